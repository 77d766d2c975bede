// Serves dist like the server, with its policy, and proxies everything else to a Nexo server:
// NEXO_URL=http://127.0.0.1:8080 PORT=8090 npm run serve
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const DIST = fileURLToPath(new URL("../dist", import.meta.url));

/** The content security policy: scripts, styles and connections of its own origin only. */
export const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self' ws: wss:",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".webmanifest": "application/manifest+json",
};

/** A file of dist, if it exists. */
async function fileAt(path) {
  const name = path === "/" ? "/index.html" : normalize(path);
  const type = TYPES[extname(name)];
  if (type === undefined || name.includes("..")) return undefined;
  const body = await readFile(join(DIST, name)).catch(() => undefined);
  const cache = name.startsWith("/assets/") ? "public, max-age=31536000, immutable" : "no-cache";
  return body && { body, headers: { "content-type": type, "cache-control": cache } };
}

/** Starts the server; `target` may be changed while it runs. */
export function serve(target, port = 0) {
  const to = { host: "", port: 0 };
  const aim = (url) => {
    const { hostname, port: number } = new URL(url);
    Object.assign(to, { host: hostname, port: Number(number) });
  };
  aim(target);
  const server = createServer(async (incoming, response) => {
    const path = new URL(incoming.url, "http://nexo").pathname;
    const file = incoming.method === "GET" ? await fileAt(path) : undefined;
    if (file !== undefined) {
      const headers = {
        ...file.headers,
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
      };
      response.writeHead(200, headers).end(file.body);
      return;
    }
    const { method, headers, url } = incoming;
    const outgoing = request({ ...to, method, headers, path: url }, (upstream) => {
      response.writeHead(upstream.statusCode, upstream.headers);
      upstream.pipe(response);
    });
    outgoing.on("error", () => response.writeHead(502).end());
    incoming.pipe(outgoing);
  });
  server.on("upgrade", (incoming, socket, head) => {
    const upstream = connect(to.port, to.host, () => {
      const lines = [`${incoming.method} ${incoming.url} HTTP/1.1`];
      for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
        lines.push(`${incoming.rawHeaders[at]}: ${incoming.rawHeaders[at + 1]}`);
      }
      upstream.write(lines.join("\r\n") + "\r\n\r\n");
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    const end = () => (socket.destroy(), upstream.destroy());
    upstream.on("error", end).on("close", end);
    socket.on("error", end).on("close", end);
  });
  return new Promise((ready) => {
    server.listen(port, "127.0.0.1", () => {
      const close = () => {
        server.closeAllConnections();
        return new Promise((done) => server.close(done));
      };
      ready({ url: `http://127.0.0.1:${server.address().port}`, aim, close });
    });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = process.env.NEXO_URL ?? "http://127.0.0.1:8080";
  const { url } = await serve(target, Number(process.env.PORT ?? 8090));
  console.log(`The web client is at ${url}, its Nexo at ${target}`);
}
