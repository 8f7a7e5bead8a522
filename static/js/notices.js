// What the live layer says: the strip, the announcer (UI-89), title and favicon (UI-49), the desktop.
import { on } from "./app.js";

const root = document.documentElement;
const GRACE_MS = { up: 0, connecting: 0, refreshing: 1_000, down: 3_000, delayed: 3_000 };
const JOIN_MS = 1_000;

// --- the strip: bound to the state alone, shown after a grace, gone at once ------------------------------------

let waits = 0;
on("live:state", ({ detail: state }) => {
  clearTimeout(waits);
  const lines = [...document.querySelectorAll("#live-strip [data-when]")];
  const line = lines.find(({ dataset }) => dataset.when === state);
  if (line && !line.hidden) return;
  lines.forEach((each) => (each.hidden = true));
  const appear = () => {
    line.hidden = false;
    say(line.firstChild.textContent);
  };
  if (line) waits = setTimeout(appear, GRACE_MS[state] ?? 0);
});

// --- the announcer: one polite region, in order, each once, repeats of one thing joined -------------------------

let queue = [];
let due = 0;
export function say(text, tag = "", many = "") {
  const text_ = text?.trim();
  if (!text_) return;
  const same = tag && queue.find((each) => each.tag === tag);
  if (same) Object.assign(same, { text: many.replace("{}", ++same.count) || text_ });
  else queue.push({ text: text_, tag, count: 1 });
  due ||= setTimeout(speak, JOIN_MS);
}
function speak() {
  due = 0;
  const spoken = queue.map(({ text }) => Object.assign(document.createElement("p"), { textContent: text }));
  document.getElementById("status").replaceChildren(...spoken);
  queue = [];
}

on("live:notice", ({ detail: { speak, text, tag, many, ...notice } }) => {
  if (speak !== undefined) say(text, tag, many);
  if (notice.desktop) show({ ...notice, text, tag });
});

// --- title and favicon follow the counts -----------------------------------------------------------------------

const title = document.title;
const icon = document.querySelector("link[rel=icon]");
const plain = icon?.href;
function count() {
  let all = 0;
  for (const badge of document.querySelectorAll("[id^=badge-]")) all += Number(badge.dataset.count);
  document.title = all ? `(${all}) ${title}` : title;
  const href = all ? icon?.dataset.dot : plain;
  if (icon && icon.href !== href) icon.href = href;
}
on("htmx:after:swap", count);
count();

// --- desktop notifications: allowed by a click in Settings, when no tab is seen, one for each thing --------------

const visible = `visible-${root.dataset.session}`;
let release = null;
function look() {
  if (document.hidden) release?.();
  else if (!release) navigator.locks?.request(visible, { mode: "shared" }, () => new Promise((go) => (release = () => (go(), (release = null)))));
}
on("visibilitychange", look);
look();

const isHere = (path) => location.pathname === path;
function show({ tag, path, desktop, text, seq }) {
  if (globalThis.Notification?.permission !== "granted" || localStorage.notify !== "on" || !document.hidden) return;
  const about = `${tag}/${seq}`;
  const first = () => navigator.locks.request("notify", async () => {
    const { held } = await navigator.locks.query();
    const shown = JSON.parse(localStorage.notified ?? "[]");
    if (shown.includes(about) || held.some(({ name }) => name === visible)) return;
    localStorage.notified = JSON.stringify([...shown.slice(-50), about]);
    const notification = new Notification(localStorage.notifyContents === "on" ? text : desktop, { tag });
    notification.onclick = () => {
      focus();
      notification.close();
      if (!isHere(path)) location.assign(path);
    };
  });
  setTimeout(first, isHere(path) ? 0 : 200); // the tab that shows the thing takes the click
}
