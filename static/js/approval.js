// The card of an approval: arming, countdown, one press, a fresh nonce; and the keys of the inbox.
// Without this every form still works: the server alone decides what counts.

const SEEN_MS = 700, LOOK_MS = 15_000, SOON_S = 60;
const cards = () => document.querySelectorAll("article[data-approval]");
const say = (text) => { const status = document.getElementById("status"); if (status && text) status.textContent = text; };

// UI-77: the verb works after 700 ms in a focused window, once everything was read, typed and proved.
let visibleSince = document.hasFocus() && !document.hidden ? performance.now() : null;
let regained = false; // the first press after the window got the focus back only focuses
const looked = () => {
  const sees = document.hasFocus() && !document.hidden;
  if (sees && visibleSince === null) { visibleSince = performance.now(); regained = true; }
  if (!sees) visibleSince = null;
  armAll();
  if (sees) setTimeout(armAll, SEEN_MS + 20);
};
addEventListener("focus", looked);
addEventListener("blur", looked);
document.addEventListener("visibilitychange", looked);
addEventListener("pointerup", () => setTimeout(() => { regained = false; }), true);
addEventListener("keydown", () => { regained = false; }, true);

const readToEnd = new Set(); // "card/place" of what was scrolled to its end once
const key = (card, place) => `${card.dataset.approval}/${card.dataset.rev}/${place}`;
const isRead = (card) => [...card.querySelectorAll("[data-read]")].every((box, place) => {
  if (box.scrollTop + box.clientHeight >= box.scrollHeight - 2) readToEnd.add(key(card, place));
  return readToEnd.has(key(card, place));
});

function missing(card, form) {
  const field = form.querySelector("input[name=typed]");
  const wanted = form.querySelector("[data-type]")?.textContent.trim();
  if (visibleSince === null || performance.now() - visibleSince < SEEN_MS) return "wait";
  if (!isRead(card)) return "read";
  if (form.querySelector("[data-needs-sign-in]")) return "fresh";
  if (field && field.value.trim() !== wanted) return "typed";
  return "";
}

function arm(card) {
  for (const form of card.querySelectorAll('form[data-decision="approve"]')) {
    const button = form.querySelector("[data-arm]");
    const what = missing(card, form);
    const said = form.querySelector("[data-missing]");
    button.setAttribute("aria-disabled", String(what !== ""));
    button.setAttribute("aria-describedby", said.id);
    said.hidden = what === "";
    const text = what ? said.dataset[what] : "";
    if (said.textContent !== text) said.textContent = text;
  }
}
const armAll = () => cards().forEach(arm);

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-arm]");
  if (!button) return;
  const isPointer = event.detail > 0;
  if (button.getAttribute("aria-disabled") === "true" || (isPointer && regained)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    const said = button.form.querySelector("[data-missing]");
    say(said.textContent || said.dataset.wait);
  }
}, true);
document.addEventListener("input", armAll);
document.addEventListener("scroll", armAll, true);

// UI-78: one press is one POST; when the answer is lost, the server is asked first what became of it.
document.addEventListener("htmx:before:request", ({ target }) => {
  if (target.matches?.("form[data-decision]")) target.setAttribute("aria-busy", "true");
});
document.addEventListener("htmx:error", ({ target }) => {
  if (target.matches?.("form[data-decision]")) look(target.closest("article"));
});
document.addEventListener("htmx:after:swap", () => { armAll(); tick(); });

// A card that may still change looks again: for its state, and for a nonce that is not old.
async function look(card) {
  if (!card?.isConnected || document.hidden) return;
  const answer = await fetch(card.dataset.approval, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!answer?.ok || !card.isConnected) return;
  const drawn = new DOMParser().parseFromString(await answer.text(), "text/html");
  const next = drawn.querySelector("article[data-approval]");
  if (!next) return;
  if (next.dataset.rev !== card.dataset.rev || card.querySelector('[aria-busy="true"]')) {
    const had = card.contains(document.activeElement);
    card.replaceWith(document.adoptNode(next));
    globalThis.htmx?.process(next);
    say(next.querySelector(".badge")?.textContent);
    if (had) next.querySelector("h1")?.focus();
    armAll();
  } else {
    const fresh = next.querySelector("input[name=nonce]")?.value;
    const options = next.querySelector("[data-options]")?.dataset.options;
    for (const form of card.querySelectorAll("[data-options]")) if (options) form.dataset.options = options;
    if (fresh) for (const field of card.querySelectorAll("input[name=nonce]")) field.value = fresh;
  }
}
setInterval(() => cards().forEach((card) => "live" in card.dataset && look(card)), LOOK_MS);

// UI-80: the countdown runs on the server's clock; at zero the buttons go at once.
const pad = (number) => String(number).padStart(2, "0");
const inWords = (s) => (s >= 86_400 ? `${Math.floor(s / 86_400)} d` : s >= 3_600 ? `${Math.floor(s / 3_600)}:${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}` : `${Math.floor(s / 60)}:${pad(s % 60)}`);
function tick() {
  for (const node of document.querySelectorAll(".countdown[data-expires]")) {
    node.began ??= performance.now();
    const left = (Date.parse(node.dataset.expires) - Date.parse(node.dataset.now) - (performance.now() - node.began)) / 1_000;
    const before = node.left ?? Infinity;
    node.left = left;
    if (left <= 0) {
      node.textContent = node.dataset.over ?? "0:00";
      node.removeAttribute("data-expires");
      const card = node.closest("article[data-approval]");
      for (const form of card?.querySelectorAll("form[data-decision], .deny, [data-edit]") ?? []) form.hidden = true;
      if (card) { say(node.dataset.over); look(card); }
      continue;
    }
    node.counter ??= node.appendChild(document.createElement("span"));
    node.counter.textContent = ` (${inWords(Math.floor(left))})`;
    node.classList.toggle("countdown-soon", left < SOON_S);
    if (before > 300 && before !== Infinity && left <= 300) say(node.dataset.five);
    if (before > SOON_S && before !== Infinity && left <= SOON_S) say(node.dataset.one);
  }
}
setInterval(tick, 1_000);

// UI-79: the keys of the inbox and of the card. None of them approves.
document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, textarea, select, [contenteditable]");
  if (field || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...document.querySelectorAll("[data-keys] .approval-row > a")];
  const at = rows.indexOf(document.activeElement);
  if (rows.length && (event.key === "j" || event.key === "k")) {
    rows[Math.min(rows.length - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)))].focus();
  } else if (event.key === "d" || event.key === "e") {
    const card = cards()[0];
    if (rows[at]) location.assign(`${rows[at].getAttribute("href")}${event.key === "e" ? "/replacement" : "#deny"}`);
    else if (card && event.key === "e") card.querySelector("[data-edit]")?.click();
    else if (card) deny(card);
    else return;
  } else return;
  event.preventDefault();
});
function deny(card) {
  const box = card.querySelector("[data-deny]");
  if (!box) return;
  box.open = true;
  box.querySelector("textarea").focus();
}

if (location.hash === "#deny" && cards().length) deny(cards()[0]);
armAll();
tick();
setTimeout(armAll, SEEN_MS + 20);
setInterval(armAll, 1_000);
