// The client of one user in its own process, driven by lines of JSON.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

const HERE = import.meta.dirname;

/** The first of these that exists. */
function built(...paths) {
  const all = paths.map((path) => resolve(HERE, "../..", path));
  return all.find((path) => existsSync(path)) ?? all[0];
}

/** How each SDK is started. */
const PROGRAMS = {
  typescript: [process.execPath, resolve(HERE, "../typescript/dist/scenario/driver.js")],
  rust: [process.env.NEXO_RUST_DRIVER ?? built("target/release/examples/driver", "target/debug/examples/driver")],
};

export class Driver {
  state = "starting";
  #waiting = [];

  constructor(sdk, { url, user, password, platform, store, timing }) {
    this.user = user;
    const [program, ...first] = PROGRAMS[sdk];
    const given = ["--url", url, "--user", user, "--password", password, "--platform", String(platform)];
    const rest = [...first, ...given, "--store", store, "--timing", JSON.stringify(timing)];
    this.child = spawn(program, rest, { stdio: ["pipe", "pipe", "inherit"] });
    this.child.stdin.on("error", () => {});
    createInterface({ input: this.child.stdout }).on("line", (line) => this.#onAnswer(JSON.parse(line)));
    this.gone = new Promise((gone) => this.child.on("exit", gone));
  }

  send(command) {
    this.child.stdin.write(JSON.stringify(command) + "\n");
  }

  /** Sends a command and waits for its answer; answers come in order. */
  request(command) {
    this.send(command);
    return new Promise((answered, failed) => {
      this.#waiting.push(answered);
      this.gone.then(() => failed(new Error(`${this.user} is gone`)));
    });
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.gone;
  }

  async stop() {
    this.send({ do: "stop" });
    await this.gone;
  }

  #onAnswer(line) {
    if (line.say === "state") this.state = line.name;
    else this.#waiting.shift()?.(line);
  }
}
