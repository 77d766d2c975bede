import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const folder = resolve(import.meta.dirname, "../../scenarios");
const names = readdirSync(folder)
  .filter((file) => file.endsWith(".json"))
  .map((file) => file.replace(".json", ""));

// Uses the built driver: `npm test` builds first.
test.each(names)("%s", { timeout: 60_000 }, async (name) => {
  const run = spawn(process.execPath, [resolve(folder, "run.mjs"), name]);
  let said = "";
  for (const stream of [run.stdout, run.stderr]) stream.on("data", (text) => (said += text));
  const code = await new Promise((exit) => run.on("exit", exit));
  expect(code, said).toBe(0);
});
