// The tab's side of the live layer: takes frames from the hub, applies them in order, and after a gap
// draws its regions again. Every page loads it; a page without live nodes simply finds no targets.
import { Hub, cursorOf } from "./live-hub.js";
import "./notices.js";

const FLUSH_MS = 60; // frames that come together are painted together
const SLICE_MS = 24; // then let the keyboard have its turn
const QUEUE_LIMIT = 2_000; // more than this while drawing again: start over
const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];
const root = document.documentElement; // <html data-cursor data-session data-heartbeat>
const session = root.dataset.session; // a public handle of the browser session, not the cookie
const name = `live-${session}-${root.lang}`; // frames are in one language

let applied = cursorOf(root.dataset.cursor);
let queue = [];
let timer = 0;
let refreshing = false;
let again = false;

// --- frames -----------------------------------------------------------------------------------------------

function enqueue(frame) {
  if (refreshing && frame.seq === null) return; // deltas are not truth; the redraw is
  queue.push(frame);
  if (refreshing && queue.length > QUEUE_LIMIT) {
    queue = [];
    again = true;
  }
  if (!refreshing) schedule();
}

const schedule = () => (timer ||= setTimeout(flush, FLUSH_MS));

// In order, one swap for each frame: htmx finds all targets of a swap before it changes anything, so a
// frame that addresses a node made by the frame before must not share a swap with it.
function flush() {
  timer = 0;
  const startedAt = performance.now();
  let done = 0;
  while (done < queue.length && performance.now() - startedAt < SLICE_MS) take(queue[done++]);
  queue = queue.slice(done);
  if (queue.length) timer = setTimeout(flush);
}

function take(frame) {
  if (frame.event === "delta") return append(JSON.parse(frame.data)); // JSON by the server's own hand
  if (frame.seq !== null) {
    if (applied && frame.epoch === applied.epoch && frame.seq <= applied.seq) return; // drawn with the page
    applied = { epoch: frame.epoch, seq: frame.seq };
  }
  if (frame.event === "message") draw(frame.data, frame.seq);
}

// Text of an unfinished thought. `at` is how much came before, in UTF-16 units; a hole shows as an ellipsis
// until the stored text replaces the node.
function append({ to, at, text }) {
  const node = document.getElementById(to);
  if (!node || !("streaming" in node.dataset)) return; // finished, or not on this page
  const have = Number(node.dataset.at ?? node.textContent.length);
  if (at + text.length <= have) return;
  const more = (at > have ? " … " : "") + text.slice(Math.max(0, have - at));
  if (node.firstChild) node.firstChild.appendData(more); // one text, however often it grows: a selection in it stays
  else node.append(more);
  node.dataset.at = at + text.length;
}

// Every fragment is a run of <hx-partial>; anything outside one is dropped.
export function draw(text, seq = null) {
  const had = document.activeElement;
  const home = had?.closest("[data-refocus]");
  htmx.swap({ text, sourceElement: document.body, target: document.body, swap: "none" }).catch(console.error);
  if (had && !had.isConnected && home?.isConnected) home.querySelector(home.dataset.refocus)?.focus();
  for (const notice of document.querySelectorAll("#notices > *")) {
    notice.remove();
    tell("notice", { ...notice.dataset, seq, text: notice.textContent });
  }
}

const tell = (what, detail) => document.dispatchEvent(new CustomEvent(`live:${what}`, { detail }));

// --- what may replace what: for frames, redraws and answers to forms alike ------------------------------------

document.addEventListener("htmx:before:swap", ({ detail: { tasks } }) => {
  for (const task of tasks) {
    const node = task.fragment?.firstElementChild;
    if (task.type === "oob") task.swapSpec = { style: "none" }; // the console sends partials; `hx-swap-oob` is never ours
    if (!node || !(task.target instanceof Element)) continue;
    const { style } = task.swapSpec;
    if (style.startsWith("outer") && isStale(node, task.target)) task.swapSpec = { style: "none" };
    if (style === "beforeend" && task.target.matches("[data-ordered]") && node.id) place(task, node);
    for (const next of task.fragment.querySelectorAll("details[id]")) {
      const now = document.getElementById(next.id);
      if (now) next.open = now.open; // the person opened or closed it, not the server
    }
  }
});

// `data-rev` is the row's version: what comes late never overwrites what is newer.
const isStale = (node, present) => Number(node.dataset.rev) < Number(present.dataset.rev);

// An element with an id exists once in its list and stands where its `data-seq` says, however often and in
// whatever order it comes. `data-ordered="desc"` puts the highest first.
function place(task, node) {
  const list = task.target;
  const twin = document.getElementById(node.id);
  if (node.dataset.client) document.getElementById(`draft-${node.dataset.client}`)?.remove();
  if (twin && isStale(node, twin)) return void (task.swapSpec = { style: "none" });
  const follower = followerOf(node, list, twin);
  if (twin) {
    const moved = twin.dataset.seq !== node.dataset.seq && twin.parentElement === list;
    if (moved) (list.moveBefore ?? list.insertBefore).call(list, twin, follower);
    [task.target, task.swapSpec] = [twin, { style: "outerMorph" }];
  } else if (follower) {
    [task.target, task.swapSpec] = [follower, { style: "beforebegin" }];
  }
}

function followerOf(node, list, twin) {
  const sign = list.dataset.ordered === "desc" ? -1 : 1;
  const comesAfter = (other) => sign * (Number(other.dataset.seq) - Number(node.dataset.seq)) > 0;
  let follower = null;
  for (let other = list.lastElementChild; other; other = other.previousElementSibling) {
    if (other === twin) continue;
    if (!comesAfter(other)) break;
    follower = other;
  }
  return follower;
}

// --- after a gap ------------------------------------------------------------------------------------------

// One request draws every region of the page as of one cursor, so what waits in the queue either is in
// the answer (and is skipped) or comes after it (and is applied): nothing twice, nothing missing.
async function refresh() {
  if (refreshing) return void (again = true);
  refreshing = true;
  clearTimeout(timer);
  timer = 0;
  root.dataset.refreshing = "";
  tell("state", "refreshing");
  for (let attempt = 0; ; attempt++) {
    queue = [];
    again = false;
    try {
      const answer = await fetchRegions();
      if (answer === "signed-out") {
        show("signed-out");
        break;
      }
      if (again) continue;
      draw(answer.html);
      applied = answer.cursor;
      tell("drawn");
      root.dataset.cursor = `${applied.epoch}:${applied.seq}`;
      break;
    } catch {
      await new Promise((done) => setTimeout(done, RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]));
    }
  }
  refreshing = false;
  delete root.dataset.refreshing;
  tell("state", root.dataset.live);
  if (queue.length) schedule();
}

async function fetchRegions() {
  const query = new URLSearchParams({ session });
  for (const region of document.querySelectorAll("[data-region]")) {
    const oldest = region.querySelector(":scope > [data-seq]")?.dataset.seq; // keep the history already loaded
    query.append("region", region.dataset.region + (oldest ? `@${oldest}` : ""));
  }
  const response = await fetch(`/live/regions?${query}`, { cache: "no-store", redirect: "manual" });
  if (response.type === "opaqueredirect" || [401, 403, 409].includes(response.status)) return "signed-out";
  const cursor = cursorOf(response.headers.get("Live-Cursor"));
  if (!response.ok || !cursor) throw new Error(`regions answered ${response.status}`);
  return { html: await response.text(), cursor };
}

// --- the hub ----------------------------------------------------------------------------------------------

function show(state) {
  root.dataset.live = state;
  if (!refreshing || state !== "up") tell("state", state); // the strip's words: notices.js
}

function receive({ t, ...message }) {
  if (t === "state") show(message.state);
  if (t === "frame") enqueue(message);
  if (t === "resync") refresh();
}

const hello = () => ({
  t: "hello",
  session,
  heartbeat: Number(root.dataset.heartbeat),
  cursor: applied ? `${applied.epoch}:${applied.seq}` : "",
});

function workerLink() {
  const script = new URL("./live-worker.js", import.meta.url);
  const worker = new SharedWorker(script, { type: "module", name });
  worker.port.onmessage = ({ data }) => receive(data);
  return (message) => worker.port.postMessage(message);
}

// Without SharedWorker one tab, the holder of a lock, runs the hub; the others reach it by broadcast.
function electedLink() {
  const channel = new BroadcastChannel(name);
  const me = crypto.randomUUID();
  let hub = null;
  const mine = { postMessage: receive };
  const others = new Map();
  const portOf = (id) => {
    if (!others.has(id)) others.set(id, { postMessage: (message) => channel.postMessage({ to: id, message }) });
    return others.get(id);
  };
  channel.onmessage = ({ data: { to, from, message, elected } }) => {
    if (elected) channel.postMessage({ from: me, message: hello() });
    else if (to === me) receive(message);
    else if (hub && from) hub.receive(portOf(from), message);
  };
  navigator.locks.request(name, () => {
    hub = new Hub();
    hub.receive(mine, hello());
    channel.postMessage({ elected: true });
    return new Promise(() => {}); // held until this tab goes away; then another takes over
  });
  return (message) => (hub ? hub.receive(mine, message) : channel.postMessage({ from: me, message }));
}

const send = globalThis.SharedWorker ? workerLink() : electedLink();
send(hello());
addEventListener("online", () => send({ t: "wake" }));
document.addEventListener("visibilitychange", () => document.hidden || send({ t: "wake" }));
addEventListener("pagehide", () => send({ t: "bye" })); // shown again, it is loaded again: app.js
