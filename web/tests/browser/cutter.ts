import { connect, createServer, type Server, type Socket } from "node:net";

/** A proxy between the page and the server that can be cut. */
export class Cutter {
  private readonly open = new Set<Socket>();
  private isCut = false;

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static start(target: string): Promise<Cutter> {
    const { hostname, port } = new URL(target);
    return new Promise((ready) => {
      let cutter: Cutter;
      const server = createServer((socket) => {
        if (cutter.isCut) return void socket.destroy();
        const onward = connect(Number(port), hostname);
        for (const one of [socket, onward]) {
          cutter.open.add(one);
          one.on("error", () => {});
          one.on("close", () => {
            cutter.open.delete(one);
            socket.destroy();
            onward.destroy();
          });
        }
        socket.pipe(onward).pipe(socket);
      });
      server.listen(0, "127.0.0.1", () => {
        const address = server.address() as { port: number };
        cutter = new Cutter(server, `http://127.0.0.1:${address.port}`);
        ready(cutter);
      });
    });
  }

  /** Cuts all connections, and new ones, until restored. */
  cut(): void {
    this.isCut = true;
    for (const socket of this.open) socket.destroy();
  }

  mend(): void {
    this.isCut = false;
  }

  stop(): Promise<void> {
    this.cut();
    return new Promise((done) => this.server.close(() => done()));
  }
}
