// What every page gets where there is script. Each page works without: this makes it pleasant.

export const on = (type, act, early = false) => document.addEventListener(type, act, early);
const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

// The token of the browser session goes with every request htmx makes (SEC-35).
on("htmx:config:request", ({ detail }) => {
  detail.ctx.request.headers["X-CSRF-Token"] = meta("csrf");
});

// An answer of 5xx or none at all is never swapped in; it is said. What is said of the server's absence goes when the
// stream is there again.
const alerts = document.getElementById("alerts");
export function alert(text, until = "") {
  const box = document.createElement("div");
  box.className = "notice notice-danger";
  box.dataset.until = until;
  box.append(document.createElement("p"));
  box.firstChild.textContent = text;
  alerts?.replaceChildren(box);
}
const said = (key) => alerts?.dataset[key] ?? "";
on("htmx:response:error", ({ detail }) => {
  if (detail.ctx.response.status >= 500) alert(said("failed"));
});
on("htmx:error", ({ detail }) => {
  if (detail.ctx && !detail.ctx.response) alert(said("offline"), "up");
});
on("live:state", ({ detail }) => document.querySelector(`#alerts > [data-until="${detail}"]`)?.remove());
on("htmx:before:request", () => alerts?.replaceChildren());

// Where something was refused, the reader is taken there.
const focusRefusal = () => document.querySelector("[data-focus]")?.focus();
on("htmx:after:swap", ({ detail }) => detail.ctx.response && focusRefusal()); // not for a frame

const onClick = {
  // A link that asks on a page of its own asks in a dialog instead.
  "[data-dialog]": (link, event) => {
    const dialog = document.getElementById(link.dataset.dialog);
    if (!dialog?.showModal || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    dialog.showModal();
  },
  "[data-reload]": (_link, event) => {
    event.preventDefault();
    location.reload();
  },
  "[data-reveal]": (button) => {
    const field = document.getElementById(button.dataset.reveal);
    const show = field.type === "password";
    field.type = show ? "text" : "password";
    button.setAttribute("aria-pressed", String(show));
  },
  "[data-copy]": async (button) => {
    const box = button.closest(".copyable, .code");
    const text = box.querySelector("[data-copy-text]");
    let copied = true;
    try {
      await navigator.clipboard.writeText(text.textContent);
    } catch {
      copied = false;
      getSelection().selectAllChildren(text);
    }
    const word = box.querySelector(copied ? "[data-copied]" : "[data-copy-failed]");
    word.hidden = false;
    document.getElementById("status").textContent = word.textContent;
    setTimeout(() => (word.hidden = true), 3000);
  },
};
on("click", (event) => {
  for (const [selector, act] of Object.entries(onClick)) {
    const element = event.target.closest(selector);
    if (element) act(element, event);
  }
  for (const menu of document.querySelectorAll(".menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  if (event.target.localName === "dialog") event.target.close(); // the backdrop
});

// UI-94: Enter that belongs to a composition or ends it never acts, in any field and any browser's order of events.
let composedAt = -Infinity;
on("compositionend", ({ timeStamp }) => (composedAt = timeStamp), true);
on("keydown", (event) => {
  if (event.key !== "Enter" || !(event.isComposing || event.keyCode === 229 || event.timeStamp - composedAt < 50)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

// A file that is dropped where no field takes it opens nothing (UI-62).
for (const type of ["dragover", "drop"]) {
  on(type, (event) => event.dataTransfer?.types.includes("Files") && !event.target.closest?.("[type=file]") && event.preventDefault());
}

// Esc closes the topmost thing and puts focus back where it came from.
on("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open]")) return;
  const open = [...document.querySelectorAll(".menu[open], .rail-more[open]")].pop();
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

// A form that came by the stream belongs to no browser session; this one's token goes with it.
on("submit", ({ target }) => {
  if (target.method !== "post" || target.elements._csrf) return;
  target.append(Object.assign(document.createElement("input"), { type: "hidden", name: "_csrf", value: meta("csrf") }));
}, true);

// A secret is never sent in clear view of a password manager's "text" field.
on("submit", ({ target }) => {
  for (const button of target.querySelectorAll('[data-reveal][aria-pressed="true"]')) button.click();
});

// Controls that need script appear with it.
function enhance() {
  for (const control of document.querySelectorAll("[data-reveal], [data-copy]")) control.hidden = false;
  for (const field of document.querySelectorAll("[data-time-zone]")) {
    field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || field.value;
  }
}
on("htmx:after:swap", enhance);

// Back from the page cache: what is shown may be old, and its token too.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());

if (navigator.maxTouchPoints) import("./keyboard.js");
enhance();
focusRefusal();
