// The package as installed: packed, installed elsewhere, and used from every kind of project.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

import { Server } from "./server.js";

const SDK = resolve(import.meta.dirname, "..");
const TSC = join(SDK, "node_modules/typescript/bin/tsc");
const folder = mkdtempSync(join(tmpdir(), "nexo-package-"));
const installed = join(folder, "node_modules/nexo-sdk");
let server: Server;

beforeAll(async () => {
  server = await Server.start();
  // `npm test` has built it; building here would remove dist/ while other tests use it.
  const pack = ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder];
  const name = execFileSync("npm", pack, { cwd: SDK, encoding: "utf8" }).trim();
  writeFileSync(join(folder, "package.json"), '{ "private": true }');
  const install = ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=peer"];
  execFileSync("npm", [...install, `./${name}`], { cwd: folder });
  mkdirSync(join(folder, "node_modules/@types"));
  for (const used of ["ws", "@types/ws", "@types/node", "undici-types"]) {
    symlinkSync(join(SDK, "node_modules", used), join(folder, "node_modules", used));
  }
}, 120_000);

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const SCRIPT = `
async function main(me, other) {
  const store = new FileStore(me + ".store");
  const client = new Client({ url: process.argv[2], webSocket: WebSocket, store });
  const heard = new Promise((hear) => client.on("message", (message) => message.isMine || hear(message.body)));
  const problem = await client.login(me, "wrong password").catch((error) => error);
  if (!(problem instanceof Refused) || problem.reason !== "user_not_found" && problem.reason !== "login_failed") throw problem;
  await client.register({ userId: me, nickname: me, password: "test-password-1" });
  await client.login(me, "test-password-1");
  for (;;) {
    const found = await client.people.get(other).catch(() => undefined);
    if (found) break;
    await new Promise((later) => setTimeout(later, 50));
  }
  await client.saved(client.send({ to: other }, "from " + me));
  console.log(await heard);
  client.close();
}
`;

async function run(file: string, text: string): Promise<string> {
  writeFileSync(join(folder, file), text);
  const child = spawn(process.execPath, [file, server.url], { cwd: folder });
  let said = "";
  child.stdout.on("data", (words: Buffer) => (said += words.toString()));
  child.stderr.on("data", (words: Buffer) => (said += words.toString()));
  await new Promise((gone) => child.on("exit", gone));
  return said.trim();
}

test("a module and a CommonJS script talk with each other", async () => {
  const imports = `
    import { Client, Refused } from "nexo-sdk";
    import { FileStore } from "nexo-sdk/file";
    import { WebSocket } from "ws";`;
  const requires = `
    const { Client, Refused } = require("nexo-sdk");
    const { FileStore } = require("nexo-sdk/file");
    const { WebSocket } = require("ws");`;
  const said = await Promise.all([
    run("anna.mjs", `${imports}${SCRIPT}await main("anna", "ben");`),
    run("ben.cjs", `${requires}${SCRIPT}main("ben", "anna");`),
  ]);
  expect(said).toEqual(["from ben", "from anna"]);
});

const PROGRAM = `
import { Client, type ConversationSummary, type Group, type Message, Refused, type User } from "nexo-sdk";
import { FileStore } from "nexo-sdk/file";
import { WebSocket } from "ws";

export async function main(): Promise<void> {
  const client = new Client({ url: "http://127.0.0.1:1", webSocket: WebSocket, store: new FileStore("x") });
  const messages: readonly Message[] = client.messages({ to: "bob" });
  const line: ConversationSummary | undefined = client.conversations()[0];
  const off: () => void = client.subscribe(() => {});
  const group: Group = await client.groups.create({ name: "Chess", memberIds: ["bob"], joinType: "open" });
  const user: User | undefined = client.people.known("bob");
  const count: number = (await client.request<{ total: number }>("GET", "/x")).data.total;
  try {
    await client.login("a", "b");
  } catch (error) {
    if (error instanceof Refused && error.reason === "login_failed") off();
  }
  // @ts-expect-error a snapshot is not for changing
  messages.push(messages[0]);
  // @ts-expect-error no reason the server knows
  if (new Refused("kicked").reason === "made_up") return;
  console.log(line?.name, group.groupId, user?.nickname, count);
}
`;

test.each([
  ["of modules", "module", { module: "NodeNext", moduleResolution: "NodeNext" }],
  ["of CommonJS", "commonjs", { module: "NodeNext", moduleResolution: "NodeNext" }],
  [
    "of CommonJS, the older way",
    "commonjs",
    { module: "CommonJS", moduleResolution: "Node10", esModuleInterop: true, skipLibCheck: true },
  ],
  ["for a bundler", "module", { module: "ESNext", moduleResolution: "Bundler", skipLibCheck: true }],
])(
  "a TypeScript project %s finds the types",
  (_, type, options) => {
    const project = mkdtempSync(join(folder, "project-"));
    writeFileSync(join(project, "package.json"), JSON.stringify({ type }));
    writeFileSync(join(project, "main.ts"), PROGRAM);
    // Without DOM types and with library checks, like a strict server project.
    const compilerOptions = {
      target: "ES2022",
      lib: ["ES2022"],
      types: ["node"],
      strict: true,
      skipLibCheck: false,
      ...options,
    };
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }));
    const args = [TSC, "-p", project, "--outDir", join(project, "out")];
    const said = (() => {
      try {
        return execFileSync(process.execPath, args, { encoding: "utf8" });
      } catch (error) {
        return (error as { stdout: string }).stdout;
      }
    })();
    expect(said).toBe("");
    if (options.module === "ESNext") return;
    const made = readFileSync(join(project, "out/main.js"), "utf8");
    expect(made.includes("require(")).toBe(type === "commonjs");
    cpSync(join(project, "package.json"), join(project, "out/package.json"));
    execFileSync(process.execPath, [join(project, "out/main.js")]);
  },
  120_000,
);

test("it brings its license and its papers, and nothing of ours", () => {
  const licence = readFileSync(join(SDK, "../../LICENSE"), "utf8");
  expect(readFileSync(join(installed, "LICENSE"), "utf8")).toBe(licence);
  expect(readFileSync(join(installed, "README.md"), "utf8")).toContain("nexo-sdk");
  const { name, version, license, repository } = JSON.parse(
    readFileSync(join(installed, "package.json"), "utf8"),
  );
  expect({ name, license }).toEqual({ name: "nexo-sdk", license: "Apache-2.0" });
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(repository).toMatchObject({ type: "git", directory: "sdk/typescript" });
  const list = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const [{ files }] = JSON.parse(
    execFileSync("npm", list, { cwd: SDK, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
  );
  const foreign = files
    .map((file: { path: string }) => file.path)
    .filter(
      (path: string) =>
        !/^(dist\/(cjs\/)?[a-zA-Z]+(\.d)?\.(ts|js)|dist\/cjs\/package\.json|LICENSE|README\.md|package\.json)$/.test(
          path,
        ),
    );
  expect(foreign).toEqual([]);
}, 60_000);
