import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { WebSocket } from "ws";

import { Client, type ClientOptions } from "../src/index.js";

const ROOT = resolve(import.meta.dirname, "../../..");

/** The server under test. */
function binary(): string {
  const built = ["target/release/nexo", "target/debug/nexo"].map((path) => join(ROOT, path));
  const found = process.env["NEXO_BIN"] ?? built.find((path) => existsSync(path));
  if (found === undefined) throw new Error("no server: build it, or name it in NEXO_BIN");
  return found;
}

/** A real server in its own folder. */
export class Server {
  readonly data = mkdtempSync(join(tmpdir(), "nexo-sdk-"));
  url = "";
  private process: ChildProcess | undefined;
  private readonly clients: Client[] = [];

  static async start(settings: Record<string, string> = {}): Promise<Server> {
    const server = new Server(settings);
    await server.run("127.0.0.1:0");
    return server;
  }

  private constructor(private readonly settings: Record<string, string>) {}

  async run(listen: string): Promise<void> {
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
    const child = spawn(binary(), ["serve", "--data", this.data, "--listen", listen], { env });
    this.process = child;
    this.url = await new Promise((found, failed) => {
      let said = "";
      const hear = (text: Buffer) => {
        said += text.toString();
        const address = /listening on (http:\S+)/.exec(said)?.[1];
        if (address !== undefined) found(address);
      };
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
      child.on("exit", () => failed(new Error(said)));
    });
  }

  /** Stops the process; `run` starts it again on the same data. */
  async halt(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.process;
    if (child === undefined || child.exitCode !== null) return;
    await new Promise((gone) => {
      child.on("exit", gone);
      child.kill(signal);
    });
  }

  client(options: Partial<ClientOptions> = {}): Client {
    const timing = { backoffBaseMs: 50, backoffMaxMs: 500, quietMs: 500, silenceMs: 500 };
    const client = new Client({
      url: this.url,
      webSocket: WebSocket,
      ...options,
      timing: { ...timing, ...options.timing },
    });
    this.clients.push(client);
    return client;
  }

  async person(userId: string, options: Partial<ClientOptions> = {}): Promise<Client> {
    const client = this.client(options);
    await client.register({ userId, nickname: userId, password: "test-password-1" });
    await client.login(userId, "test-password-1");
    await until(() => client.state.name === "online", `${userId} online`);
    return client;
  }

  /** Sends a request as the operator; returns `data` of the answer. */
  async operate<T>(method: string, path: string, body: object = {}): Promise<T> {
    const key = readFileSync(join(this.data, "system.token"), "utf8").trim();
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const response = await fetch(this.url + path, { method, headers, body: JSON.stringify(body) });
    const answer = (await response.json()) as { data: T; reason?: string };
    if (!response.ok) throw new Error(`${path}: ${answer.reason}`);
    return answer.data;
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.close();
    await this.halt();
    rmSync(this.data, { recursive: true, force: true });
  }
}

/** Waits until a condition holds. */
export async function until(is: () => unknown | Promise<unknown>, what: string, ms = 5000): Promise<void> {
  const end = Date.now() + ms;
  while (!(await is())) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((later) => setTimeout(later, 10));
  }
}
