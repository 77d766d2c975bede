import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const ROOT = resolve(import.meta.dirname, "../../..");

function binary(): string {
  const built = ["target/release/nexo", "target/debug/nexo"].map((path) => join(ROOT, path));
  const found = process.env["NEXO_BIN"] ?? built.find((path) => existsSync(path));
  if (found === undefined) throw new Error("no server: build it, or name it in NEXO_BIN");
  return found;
}

/** Cheap password hashing and no limits, unless a test is about them. */
const SETTINGS = {
  NEXO_AUTH__ARGON2_MEMORY_KIB: "8",
  NEXO_AUTH__ARGON2_PASSES: "1",
  NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND: "0",
  NEXO_LIMITS__USER_SENDS_PER_SECOND: "0",
  NEXO_ACCOUNTS__STRANGERS_PER_HOUR: "0",
  NEXO_GROUPS__BY_STRANGERS_PER_HOUR: "0",
  NEXO_LIMITS__USER_REQUESTS_PER_SECOND: "0",
  NEXO_LIMITS__REGISTRATIONS_PER_MINUTE: "1000000",
};

export const PASSWORD = "correct horse";

/** A real server in its own folder. */
export class Server {
  url = "";
  private readonly data = mkdtempSync(join(tmpdir(), "nexo-web-"));
  private process: ChildProcess | undefined;

  private constructor(private readonly settings: Record<string, string>) {}

  static async start(settings: Record<string, string> = {}): Promise<Server> {
    const server = new Server(settings);
    await server.run("127.0.0.1:0");
    return server;
  }

  /** Starts or restarts it on the same data and port. */
  async run(listen = new URL(this.url).host): Promise<void> {
    const env = { ...SETTINGS, ...this.settings };
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

  async halt(signal: NodeJS.Signals): Promise<void> {
    const child = this.process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    await new Promise((gone) => {
      child.on("exit", gone);
      child.kill(signal);
    });
  }

  /** Suspends the process: it does not answer, but keeps its connections. */
  freeze(): void {
    this.process?.kill("SIGSTOP");
  }

  wake(): void {
    this.process?.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    await this.halt("SIGKILL");
    rmSync(this.data, { recursive: true, force: true });
  }

  /** Runs an operator command on the server's data; returns its output. */
  async tool(...args: string[]): Promise<string> {
    const env = { ...SETTINGS, ...this.settings };
    return (await promisify(execFile)(binary(), [...args, "--data", this.data], { env })).stdout;
  }

  /** Sends an HTTP request; returns `data` of the answer. */
  async ask<T>(method: string, path: string, body?: object, token?: string): Promise<T> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    const request: RequestInit = { method, headers };
    if (body !== undefined) request.body = JSON.stringify(body);
    const response = await fetch(this.url + path, request);
    const answer = (await response.json()) as { data: T; reason?: string };
    if (!response.ok) throw new Error(`${path}: ${answer.reason}`);
    return answer.data;
  }

  async register(userId: string, nickname = userId, avatar = ""): Promise<void> {
    const body = { user_id: userId, nickname, password: PASSWORD, avatar };
    await this.ask("POST", "/user/register", body);
  }

  /** A separate token, for requests without the page. */
  async token(userId: string): Promise<string> {
    const body = { user_id: userId, password: PASSWORD, platform_id: 1 };
    return (await this.ask<{ token: string }>("POST", "/auth/login", body)).token;
  }

  /** Sends an HTTP request as the operator. */
  operate<T>(path: string, body: object = {}): Promise<T> {
    const key = readFileSync(join(this.data, "system.token"), "utf8").trim();
    return this.ask<T>("POST", path, body, key);
  }

  /** Sends a message as the system account. */
  async systemSay(recv_id: string, text: string): Promise<void> {
    const client_msg_id = crypto.randomUUID();
    await this.operate("/system/send", { client_msg_id, session_type: 1, recv_id, msg_type: 1, content: { text } });
  }

  /** Sends a message without a page. */
  async say(token: string, to: { recv_id: string } | { group_id: string }, text: string): Promise<void> {
    const session_type = "recv_id" in to ? 1 : 2;
    const client_msg_id = crypto.randomUUID();
    await this.ask("POST", "/msg/send", { client_msg_id, session_type, ...to, msg_type: 1, content: { text } }, token);
  }
}
