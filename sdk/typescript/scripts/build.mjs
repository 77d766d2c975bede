// Builds dist/ (ECMAScript modules) and dist/cjs/ (CommonJS), then what only this repository uses.
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const cwd = fileURLToPath(new URL("..", import.meta.url));
const build = (project) => execFileSync(process.execPath, [tsc, "-p", project], { cwd, stdio: "inherit" });

rmSync(`${cwd}/dist`, { recursive: true, force: true }); // nothing of an older build is packed
build("tsconfig.build.json");
build("tsconfig.cjs.json");
// The package itself is "type": "module"; this folder is not.
writeFileSync(`${cwd}/dist/cjs/package.json`, '{ "type": "commonjs" }\n');
build("scenario");
build("examples");
