// The one live stream of this browser: connects, resumes, watches, and fans out to the tabs.
// Runs in the SharedWorker (live-worker.js), or in one elected tab where there is none (live.js).
//
// tab → hub   {t: "hello", cursor, session, heartbeat}   {t: "wake"}   {t: "bye"}
// hub → tab   {t: "state", state}   {t: "frame", event, seq, epoch, data}   {t: "resync"}

const STALL_BEATS = 2.5; // silent for this many heartbeats: the connection is dead, whatever TCP says
const FIRST_BYTE_MS = 5_000; // headers but no byte: something on the way is buffering
const STEADY_MS = 5_000; // up this long: the next drop starts the backoff from the beginning
const BACKOFF_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
const KEPT_FRAMES = 500; // for tabs whose page was rendered before the last frames came

export const cursorOf = (id) => {
  const [, epoch, seq] = /^([\w-]*):(\d+)$/.exec(id ?? "") ?? [];
  return seq ? { epoch, seq: Number(seq) } : null; // no epoch: before the first event of all
};

export class Hub {
  #ports = new Set();
  #state = "connecting";
  #cursor = null; // the last event received; survives every kind of failure
  #floor = 0; // #kept holds every event after this one
  #kept = [];
  #session = "";
  #heartbeat = 15_000;
  #running = false;
  #abort = null;
  #wake = null;
  #lastByteAt = 0;

  receive(port, message) {
    if (message.t === "hello") this.#hello(port, message);
    if (message.t === "wake") this.#wakeUp();
    if (message.t === "bye") this.#ports.delete(port);
  }

  #hello(port, { cursor: id, session, heartbeat }) {
    const cursor = cursorOf(id);
    this.#ports.add(port);
    port.postMessage({ t: "state", state: this.#state });
    if (!this.#running) {
      this.#running = true;
      this.#session = session;
      this.#heartbeat = heartbeat || this.#heartbeat;
      this.#cursor = cursor;
      this.#floor = cursor?.seq ?? 0;
      this.#run();
    } else if (!cursor || cursor.epoch !== this.#cursor?.epoch) {
      port.postMessage({ t: "resync" });
      this.#abort?.abort(); // perhaps it is the hub that is out of date; the server will say
    } else if (cursor.seq < this.#floor) {
      port.postMessage({ t: "resync" });
    } else {
      this.#kept.filter((frame) => frame.seq > cursor.seq).forEach((frame) => port.postMessage(frame));
    }
  }

  #wakeUp() {
    this.#wake?.();
    if (this.#state === "up" && Date.now() - this.#lastByteAt > 2 * this.#heartbeat) this.#abort?.abort();
  }

  #tell(message) {
    for (const port of this.#ports) port.postMessage(message);
  }

  #become(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.#tell({ t: "state", state });
  }

  async #run() {
    for (let failures = 0; ; ) {
      const startedAt = Date.now();
      const outcome = await this.#connect();
      if (outcome === "signed-out" || outcome === "session-changed") {
        this.#become(outcome);
        await new Promise((wake) => (this.#wake = wake)); // until somebody comes back to a tab
        failures = 0;
        continue;
      }
      this.#become("down");
      if (Date.now() - startedAt > STEADY_MS) failures = 0;
      const woken = await this.#sleep(BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)]);
      failures = woken ? 0 : failures + 1;
    }
  }

  // Resolves true when woken before the time was over.
  #sleep(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms * (0.7 + Math.random() * 0.6), false);
      this.#wake = () => (clearTimeout(timer), resolve(true));
    });
  }

  async #connect() {
    const abort = (this.#abort = new AbortController());
    let watchdog, late;
    const pet = () => {
      this.#lastByteAt = Date.now();
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), STALL_BEATS * this.#heartbeat);
    };
    pet();
    try {
      const query = new URLSearchParams({ session: this.#session });
      if (this.#cursor) query.set("after", `${this.#cursor.epoch}:${this.#cursor.seq}`);
      const response = await fetch(`/live/stream?${query}`, {
        headers: { Accept: "text/event-stream" },
        cache: "no-store",
        credentials: "same-origin",
        redirect: "manual",
        signal: abort.signal,
      });
      if (response.status === 409) return "session-changed"; // another person signed in since
      if (response.type === "opaqueredirect" || [401, 403].includes(response.status)) return "signed-out";
      if (response.status !== 200 || !response.headers.get("content-type")?.startsWith("text/event-stream"))
        throw new Error(`stream answered ${response.status}`);
      late = setTimeout(() => this.#become("delayed"), FIRST_BYTE_MS);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parse = parser((frame) => this.#take(frame));
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "ended";
        clearTimeout(late);
        pet();
        this.#become("up");
        if (parse(value) === "signed-out") return "signed-out";
      }
    } catch {
      return "failed"; // a refused, broken or silent connection: all the same, try again
    } finally {
      clearTimeout(watchdog);
      clearTimeout(late);
      abort.abort();
    }
  }

  #take({ event, id, data }) {
    if (event === "signed-out") return event;
    const cursor = cursorOf(id);
    if (event === "resync") {
      this.#cursor = cursor;
      this.#floor = cursor?.seq ?? 0;
      this.#kept = [];
      this.#tell({ t: "resync" });
      return event;
    }
    const frame = { t: "frame", event, seq: cursor?.seq ?? null, epoch: cursor?.epoch ?? null, data };
    if (cursor) {
      this.#cursor = cursor;
      this.#kept.push(frame);
      if (this.#kept.length > KEPT_FRAMES) this.#floor = this.#kept.shift().seq;
    }
    this.#tell(frame);
    return event;
  }
}

// Feeds text chunks to `take`, one call for each complete event; returns what the last one returned.
function parser(take) {
  let buffer = "";
  let event = "";
  let id = null;
  let data = [];
  const line = (text) => {
    if (text === "") {
      const frame = { event: event || "message", id, data: data.join("\n") };
      const complete = data.length > 0 || event !== "";
      [event, id, data] = ["", null, []];
      return complete ? take(frame) : undefined;
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(text);
    if (field === "data") data.push(value);
    if (field === "event") event = value;
    if (field === "id") id = value;
  };
  return (chunk) => {
    buffer += chunk;
    let last;
    let from = 0;
    for (let end; (end = buffer.indexOf("\n", from)) >= 0; from = end + 1) {
      last = line(buffer.slice(from, buffer[end - 1] === "\r" ? end - 1 : end)) ?? last;
      if (last === "signed-out") return last;
    }
    buffer = buffer.slice(from);
    return last;
  };
}
