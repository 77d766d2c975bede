// A proxy between clients and a server that drops, repeats, delays and cuts frames, from one seed.
import { createServer, request } from "node:http";
import { createRequire } from "node:module";

const { WebSocket, WebSocketServer } = createRequire(
  new URL("../typescript/package.json", import.meta.url),
)("ws");

/** A seeded random generator (mulberry32). */
export function dice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Proxy {
  #server = createServer((ask, answer) => this.#http(ask, answer));
  #sockets = new WebSocketServer({ noServer: true });
  #pairs = new Set();
  #connections = 0;
  #losses = [];
  #faults = {};
  counts = { frames: 0, dropped: 0, repeated: 0, cuts: 0, http: 0, httpFailed: 0 };

  constructor(target, seed) {
    this.target = target; // may change, when the server comes back elsewhere
    this.random = dice(seed);
    this.#server.on("upgrade", (ask, socket, head) => {
      this.#sockets.handleUpgrade(ask, socket, head, (client) => this.#relay(client));
    });
  }

  async listen() {
    await new Promise((done) => this.#server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  get faults() {
    return this.#faults;
  }

  set faults(faults) {
    this.#faults = faults;
    for (const pair of this.#pairs) this.#plan(pair);
  }

  /** Drops the first frame to `to` with this type and seq. */
  lose({ to, type, seqs }) {
    for (const seq of seqs) this.#losses.push({ to, type, seq: String(seq) });
  }

  /** Cuts every connection abruptly. */
  cut() {
    for (const pair of this.#pairs) pair.cut();
  }

  close() {
    this.cut();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #relay(client) {
    const upstream = new WebSocket(this.target.replace("http", "ws") + "/ws");
    const pair = { person: undefined, number: ++this.#connections, timer: undefined, cut: () => {} };
    const early = [];
    pair.cut = () => {
      client.terminate();
      upstream.terminate();
    };
    const over = () => {
      clearTimeout(pair.timer);
      this.#pairs.delete(pair);
    };
    this.#pairs.add(pair);
    const [up, down] = [this.#lane((text) => upstream.send(text)), this.#lane((text) => client.send(text))];
    const isOpen = (socket) => socket.readyState === WebSocket.OPEN;
    client.on("message", (data) => {
      const text = data.toString();
      if (isOpen(upstream)) this.#pass(pair, up, text);
      else early.push(text);
    });
    upstream.on("open", () => {
      for (const text of early) this.#pass(pair, up, text);
    });
    upstream.on("message", (data) => {
      const text = data.toString();
      if (text.startsWith('{"type":"AUTH_OK"')) pair.person ??= JSON.parse(text).from;
      if (isOpen(client)) this.#pass(pair, down, text);
    });
    client.on("close", () => (over(), upstream.terminate()));
    upstream.on("close", (code, reason) => {
      over();
      // After the frames in flight, with the server's close code.
      down(() => (code >= 4000 || code === 1000 || code === 1009 ? client.close(code, reason) : client.terminate()));
    });
    for (const socket of [client, upstream]) socket.on("error", () => {});
    this.#plan(pair);
  }

  /** Frames in one direction keep their order, whatever their delays. */
  #lane(send) {
    const queue = [];
    let timer;
    const drain = () => {
      timer = undefined;
      while (queue.length > 0 && queue[0].at <= Date.now()) {
        const { what } = queue.shift();
        try {
          if (typeof what === "string") send(what);
          else what();
        } catch {
          // the other side is gone
        }
      }
      if (queue.length > 0) timer = setTimeout(drain, queue[0].at - Date.now());
    };
    return (what) => {
      const [least, most] = this.faults.delayMs ?? [0, 0];
      queue.push({ at: Date.now() + least + Math.floor(this.random() * (most - least)), what });
      if (timer === undefined) drain();
    };
  }

  #pass(pair, lane, text) {
    this.counts.frames += 1;
    if (this.#isLost(pair, text)) {
      this.counts.dropped += 1;
      return;
    }
    lane(text);
    const isHello = text.includes('"type":"AUTH');
    if (!isHello && this.random() < (this.faults.repeat ?? 0)) {
      this.counts.repeated += 1;
      lane(text);
    }
  }

  #isLost(pair, text) {
    const wanted = this.#losses.findIndex(
      ({ to, type, seq }) =>
        to === pair.person && text.startsWith(`{"type":"${type}"`) && text.includes(`"msgSeq":"${seq}"`),
    );
    if (wanted >= 0) return this.#losses.splice(wanted, 1).length > 0;
    // Every other connection gets its AUTH through, so that no client is locked out for ever.
    if (text.includes('"type":"AUTH') && pair.number % 2 === 1) return false;
    return this.random() < (this.faults.drop ?? 0);
  }

  /** Cuts a connection some time after it was opened. */
  #plan(pair) {
    clearTimeout(pair.timer);
    if (this.faults.cutEveryMs === undefined) return;
    const [least, most] = this.faults.cutEveryMs;
    pair.timer = setTimeout(() => {
      this.counts.cuts += 1;
      pair.cut();
    }, least + this.random() * (most - least));
  }

  #http(ask, answer) {
    this.counts.http += 1;
    const { fail = 0, cut = 0 } = this.faults.http ?? {};
    const chance = this.random();
    if (chance < fail + cut) {
      this.counts.httpFailed += 1;
      if (chance < cut) return ask.socket.destroy();
      const body = JSON.stringify({ code: 1002, message: "busy", reason: "server_busy", request_id: "" });
      answer.writeHead(503, { "content-type": "application/json" });
      return answer.end(body);
    }
    const { hostname, port } = new URL(this.target);
    const { method, url: path, headers } = ask;
    const passed = request({ hostname, port, method, path, headers }, (from) => {
      answer.writeHead(from.statusCode, from.headers);
      from.pipe(answer);
    });
    passed.on("error", () => ask.socket.destroy());
    ask.pipe(passed);
  }
}
