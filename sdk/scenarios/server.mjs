// A real server in its own folder, and the requests of the runner to it.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
const PASSWORD = "test-password-1";

function binary() {
  const built = ["target/release/nexo", "target/debug/nexo"].map((path) => join(ROOT, path));
  const found = process.env.NEXO_BIN ?? built.find((path) => existsSync(path));
  if (found === undefined) throw new Error("no server: build it, or name it in NEXO_BIN");
  return found;
}

export class Server {
  #child;
  #tokens = new Map();
  password = PASSWORD;

  constructor(folder, settings) {
    this.folder = folder;
    this.settings = settings;
  }

  async start() {
    const env = {
      NEXO_AUTH__ARGON2_MEMORY_KIB: "8",
      NEXO_AUTH__ARGON2_PASSES: "1",
      NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND: "0",
      NEXO_LIMITS__USER_SENDS_PER_SECOND: "0",
      NEXO_ACCOUNTS__STRANGERS_PER_HOUR: "0",
      NEXO_GROUPS__BY_STRANGERS_PER_HOUR: "0",
      NEXO_LIMITS__USER_REQUESTS_PER_SECOND: "0",
      ...this.settings,
    };
    const arguments_ = ["serve", "--data", join(this.folder, "data"), "--listen", "127.0.0.1:0"];
    const child = spawn(binary(), arguments_, { env });
    this.#child = child;
    this.url = await new Promise((found, failed) => {
      let said = "";
      const hear = (text) => {
        said += text;
        const address = /listening on (http:\S+)/.exec(said)?.[1];
        if (address !== undefined) found(address);
      };
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
      child.on("exit", () => failed(new Error(said)));
    });
  }

  async stop() {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return;
    await new Promise((gone) => {
      child.on("exit", gone);
      child.kill("SIGTERM");
    });
  }

  async register(user_id) {
    await this.ask("POST", "/user/register", { user_id, nickname: user_id, password: PASSWORD });
  }

  /** Signs in as a user on an unnamed device. */
  async as(person, method, path, body) {
    if (!this.#tokens.has(person)) {
      const login = { user_id: person, password: PASSWORD, platform_id: 0 };
      this.#tokens.set(person, (await this.ask("POST", "/auth/login", login)).token);
    }
    return this.ask(method, path, body, this.#tokens.get(person));
  }

  async heads(person) {
    return (await this.as(person, "GET", "/conversation/heads?limit=1000")).heads;
  }

  /** All messages of a conversation that a user may see. */
  async history(person, { conversation_id, min_seq, max_seq }) {
    const messages = [];
    for (let from = min_seq; from <= max_seq; ) {
      const path = `/msg/pull?conversation_id=${conversation_id}&begin_seq=${from}&end_seq=${max_seq}&limit=100`;
      const page = await this.as(person, "GET", path);
      if (page.messages.length === 0) break;
      messages.push(...page.messages);
      from = messages.at(-1).seq + 1;
    }
    return messages;
  }

  async ask(method, path, body, token) {
    const headers = { "content-type": "application/json" };
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    const response = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${answer.reason}`);
    return answer.data;
  }
}
