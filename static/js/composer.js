// Own messages on their way (UI-47), and drafts that survive reload, sign-out and other tabs.
//
// The page has, beside `#messages`: `#outbox`; `<template id="draft">` with `[data-text]`, `[data-state=sending]`,
// `[data-state=not-sent]`, `[data-again]`, `[data-edit]`; and
// <form id="composer" method="post" action="…" data-composer data-draft="<user id>/<conversation id>" data-said="Sent">
// with `client_id` (hidden) and a textarea `text`. Whatever else stands in the form goes with each message, as it was when
// it was sent. The answer to the POST is the same partial as the frame.
import { draw } from "./live.js";
import { say } from "./notices.js";

const PATIENCE_MS = 15_000;
const SEEN = /[^\s\p{Cc}\p{Cf}\u034f\u115f\u1160\u2800\u3164\uffa0\ufe00-\ufe0f]/u; // nothing to see is no message
const form = document.querySelector("form[data-composer]");
const field = form?.elements.text;
const outbox = document.getElementById("outbox");
const key = (what) => `${what}:${form.dataset.draft}`; // one person's own, whoever signs in after
const waiting = () => JSON.parse(localStorage.getItem(key("outbox")) ?? "{}");
const keep = (messages) => localStorage.setItem(key("outbox"), JSON.stringify(messages));
const forget = (client) => keep(Object.fromEntries(Object.entries(waiting()).filter(([id]) => id !== client)));

export const post = (path, fields, signal = AbortSignal.timeout(PATIENCE_MS)) => fetch(path, {
  method: "POST",
  body: new URLSearchParams(fields),
  headers: { "HX-Request": "true", "X-CSRF-Token": document.querySelector("meta[name=csrf]").content },
  redirect: "manual",
  signal,
});

const bubbleOf = (client) => document.getElementById(`draft-${client}`);
function bubble(client, message) {
  const box = bubbleOf(client) ?? document.createElement("div");
  if (!box.id) {
    box.id = `draft-${client}`;
    box.append(document.getElementById("draft").content.cloneNode(true));
    box.querySelector("[data-text]").textContent = message.text;
    box.querySelector("[data-again]").onclick = () => send(client, message);
    box.querySelector("[data-edit]").onclick = () => {
      box.remove();
      forget(client);
      write(message.text + (field.value && `\n${field.value}`));
      field.focus();
    };
    outbox.append(box);
  }
  return (state) => {
    for (const each of box.querySelectorAll("[data-state]")) each.hidden = each.dataset.state !== state;
  };
}

// One at a time: two posts at once may overtake each other, and the store keeps the order in which they arrive.
let before = Promise.resolve();
function send(client, message) {
  const become = bubble(client, message);
  become("sending");
  keep({ ...waiting(), [client]: message });
  const patience = AbortSignal.timeout(PATIENCE_MS); // from the click on, whatever goes first
  before = before.then(() => deliver(client, message, become, patience));
}

async function deliver(client, message, become, patience) {
  try {
    const answer = await post(form.action, { ...message, client_id: client }, patience);
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    forget(client);
    draw(await answer.text());
    bubbleOf(client)?.remove();
    say(form.dataset.said);
  } catch {
    if (!bubbleOf(client)) return forget(client); // the stream has brought it
    become("not-sent");
    say(form.dataset.failed);
  }
}

function write(text) {
  field.value = text;
  if (text) localStorage.setItem(key("draft"), text);
  else localStorage.removeItem(key("draft"));
}

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = field.value;
    if (!SEEN.test(text)) return;
    const { _csrf, ...message } = Object.fromEntries(new FormData(form)); // the header has the token
    write("");
    send(crypto.randomUUID(), message);
  });
  form.addEventListener("keydown", (event) => {
    if (event.target !== field || event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    form.requestSubmit();
  });
  field.addEventListener("input", () => write(field.value));
  if (field.value && new URLSearchParams(location.search).has("text")) {
    write(field.value); // a draft from now on: a reload after it was sent does not bring it back
    history.replaceState(history.state, "", location.pathname);
  }
  field.value ||= localStorage.getItem(key("draft")) ?? "";
  const caret = sessionStorage.getItem(key("caret"))?.split(","); // as it was left, to look at something else
  if (field.value && caret) field.setSelectionRange(...caret);
  addEventListener("pagehide", () => sessionStorage.setItem(key("caret"), [field.selectionStart, field.selectionEnd]));
  for (const [client, message] of Object.entries(waiting())) {
    const isThere = document.querySelector(`#messages > [data-client="${CSS.escape(client)}"]`);
    if (isThere) forget(client);
    else bubble(client, message)("not-sent");
  }
}
