// A conversation: what is replied to, how far it is read, and where the view stands. Sending: composer.js.
import { post } from "./composer.js";

const composer = document.getElementById("composer");
const { text, reply_to: reply } = composer.elements;
const list = document.getElementById("messages");
const jump = document.getElementById("jump");

// --- writing -------------------------------------------------------------------------------------------------

const key = `reply:${composer.dataset.draft}`;
function replyTo(id, name) {
  reply.value = id;
  composer.querySelector("[data-reply-name]").textContent = name;
  document.getElementById("composer-reply").hidden = !id;
  if (id) localStorage.setItem(key, JSON.stringify([id, name]));
  else localStorage.removeItem(key);
}
const grow = () => (text.rows = Math.min(10, text.value.split("\n").length));
text.addEventListener("input", grow);
grow();

if (reply) {
  if (!reply.value && localStorage.getItem(key)) replyTo(...JSON.parse(localStorage.getItem(key)));
  composer.addEventListener("submit", () => {
    if (text.value) return text.focus();
    replyTo("", "");
    grow();
    text.focus();
    toEnd();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-reply], [data-reply-off]");
    if (!link) return;
    event.preventDefault();
    replyTo(link.dataset.reply ?? "", link.closest(".message")?.querySelector(".message-by").textContent ?? "");
    text.focus();
  });
} else {
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    composer.requestSubmit();
  });
}

// UI-61: a message is copied as it was written, or else selected as it stands.
async function copy(link) {
  const source = fetch(link.href, { redirect: "error" }).then((answer) => (answer.ok ? answer.blob() : Promise.reject()));
  let said = list.dataset.saidCopied;
  try {
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": source })]);
  } catch {
    said = list.dataset.saidSelected;
    getSelection().selectAllChildren(link.closest(".message").querySelector(".md") ?? link.closest("article"));
  }
  document.getElementById("status").textContent = said;
  const word = link.firstChild;
  link.dataset.word ??= word.data;
  word.data = said;
  setTimeout(() => (word.data = link.dataset.word), 3_000);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-source]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  copy(link);
});

// A message can be taken back for two minutes; then the control goes.
function expire() {
  for (const form of document.querySelectorAll("[data-until]")) form.hidden = Number(form.dataset.until) < Date.now();
}
setInterval(expire, 5_000);
expire();

// --- the view: who reads at its end stays there, nobody else is moved ------------------------------------------

const root = document.documentElement;
const end = document.getElementById("end");
const keyboard = () => parseFloat(root.style.getPropertyValue("--keyboard")) || 0; // what it covers: keyboard.js
const below = () => (end ? end.getBoundingClientRect().top - innerHeight + keyboard() : 0); // how far the end is away
const isAtEnd = () => below() < 80;
const newestOf = () => Number(list?.lastElementChild?.dataset.seq ?? 0);
let newest = newestOf();
let follows = true;
let unseen = 0;
function toEnd() {
  end?.scrollIntoView({ block: "end" });
  follow(true);
}
function follow(now) {
  follows = now;
  if (now) unseen = 0;
  if (jump) jump.hidden = now;
  if (unseen) jump.textContent = jump.dataset.new.replace("{}", unseen);
}
// Whoever moves upwards, be it a little, has left the end.
let top = scrollY;
addEventListener("scroll", () => {
  follow(scrollY < top ? below() < 2 : isAtEnd());
  top = scrollY;
}, { passive: true });
jump?.addEventListener("click", toEnd);

// Older messages come before one is at the top, and push nothing down (UI-88).
const above = new IntersectionObserver(([{ isIntersecting, target }]) => isIntersecting && target.click(), { rootMargin: "300px 0px 0px" });
let before = 0;
document.addEventListener("htmx:before:swap", () => (before = scrollY || follows ? 0 : root.scrollHeight));

document.addEventListener("htmx:after:swap", () => {
  if (before && !scrollY) scrollTo(0, root.scrollHeight - before);
  for (const link of document.querySelectorAll(".chat-row > a")) {
    if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
  }
  watch();
  expire();
  for (const { dataset, id } of list?.children ?? []) unseen += Number(dataset.seq) > newest && id.startsWith("message-") && !dataset.client;
  newest = Math.max(newest, newestOf());
  if (follows) toEnd();
  else follow(false);
});
// What somebody opens pushes the end away: they read here now. Whatever else makes the page grow or the window smaller, a
// thought that is written or the keyboard of a phone, moves along who follows.
let opening = false;
document.addEventListener("click", ({ target }) => (opening ||= Boolean(target.closest?.("summary"))), true);
document.addEventListener("toggle", () => {
  opening = false;
  follow(isAtEnd());
}, true);
const keep = () => follows && !opening && toEnd();
if (list) new ResizeObserver(keep).observe(list);
addEventListener("resize", keep);

// --- how far it is read: what was on the screen of somebody who looks -------------------------------------------

const box = document.querySelector("[data-opened]");
let read = Number(box?.dataset.read ?? 0);
let seen = read;
let due = 0;
const eye = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) seen = Math.max(seen, Number(target.dataset.seq));
  tell();
});
function watch() {
  for (const each of list?.querySelectorAll(".message") ?? []) eye.observe(each);
  const older = list?.querySelector(".older a");
  if (older) above.observe(older);
}
function tell() {
  if (!document.hidden && seen > read) due ||= setTimeout(mark, 400);
}
async function mark() {
  due = 0;
  const seq = seen;
  const answer = await post(`/conversations/${box.dataset.opened}/read-position`, { seq }).catch(() => null);
  if (!answer?.ok) return;
  read = seq;
  tell();
}
document.addEventListener("visibilitychange", tell);

// --- where it opens: at the first unread one, else at the end -----------------------------------------------------

if (list && !location.hash.startsWith("#message-")) {
  const first = document.getElementById("new");
  if (first) first.scrollIntoView({ block: "center" });
  else toEnd();
}
follow(isAtEnd());
watch();
