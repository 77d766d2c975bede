import { type AddressInfo } from "node:net";
import { createServer, request } from "node:http";
import { WebSocket, WebSocketServer } from "ws";

type Frame = Record<string, unknown> & { type: string };

/** A proxy between a client and a server that records every frame and can drop some. */
export class Tap {
  /** In the order they passed: `up` is from the client. */
  readonly frames: Array<{ way: "up" | "down"; frame: Frame }> = [];
  swallows: (way: "up" | "down", frame: Frame) => boolean = () => false;
  private readonly server = createServer((ask, answer) => {
    const { method, url: path, headers } = ask;
    this.asked.push(`${method} ${path}`);
    const { hostname, port } = new URL(this.target);
    const passed = request({ hostname, port, method, path, headers }, (from) => {
      answer.writeHead(from.statusCode ?? 502, from.headers);
      from.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    ask.pipe(passed);
  });
  readonly asked: string[] = [];

  constructor(private readonly target: string) {
    const sockets = new WebSocketServer({ server: this.server });
    sockets.on("connection", (client) => this.relay(client));
  }

  async listen(): Promise<string> {
    await new Promise<void>((done) => this.server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  of(way: "up" | "down", type: string): Frame[] {
    return this.frames.filter((one) => one.way === way && one.frame.type === type).map(({ frame }) => frame);
  }

  private relay(client: WebSocket): void {
    const upstream = new WebSocket(this.target.replace("http", "ws") + "/ws");
    const opened = new Promise((open) => upstream.on("open", open));
    client.on("message", async (data) => {
      await opened;
      this.pass("up", data.toString(), upstream);
    });
    upstream.on("message", (data) => this.pass("down", data.toString(), client));
    upstream.on("close", (code, reason) => {
      if (code >= 4000) client.close(code, reason);
      else client.terminate();
    });
    client.on("close", () => upstream.terminate());
    for (const socket of [client, upstream]) socket.on("error", () => {});
  }

  private pass(way: "up" | "down", text: string, to: WebSocket): void {
    const frame = JSON.parse(text) as Frame;
    if (this.swallows(way, frame)) return;
    this.frames.push({ way, frame });
    to.send(text);
  }
}
