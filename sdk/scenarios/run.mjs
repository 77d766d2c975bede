// node run.mjs [name …] [--sdk typescript|rust] [--long] [--seed N]
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { differences, isInOrder } from "./check.mjs";
import { Driver } from "./driver.mjs";
import { Proxy } from "./proxy.mjs";
import { Server } from "./server.mjs";

const HERE = import.meta.dirname;
/** Short timeouts, so that scenarios are fast. */
const TIMING = {
  connectTimeoutMs: 1500,
  pingAfterMs: 2000,
  pongTimeoutMs: 1000,
  backoffBaseMs: 50,
  backoffMaxMs: 500,
  stableMs: 500,
  httpTimeoutMs: 3000,
  silenceMs: 400,
  sendWindow: 64,
  ackWindowMs: 200,
  gapDelayMs: 50,
  headsEveryMs: 2000,
  quietMs: 700,
};

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    sdk: { type: "string", default: "typescript" },
    long: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
  },
});

/** A number, or one for the short and one for the long run. */
function shortOrLong(number) {
  return typeof number === "number" ? number : options.long ? number.long : number.short;
}

/** A running scenario. */
class Run {
  drivers = new Map();
  groups = new Map();
  sent = 0;

  constructor(scenario) {
    this.scenario = scenario;
    this.folder = mkdtempSync(join(tmpdir(), "nexo-scenario-"));
    this.server = new Server(this.folder, { NEXO_SESSION__POLICY: scenario.policy ?? "multi", ...scenario.settings });
  }

  async run() {
    try {
      await this.server.start();
      this.proxy = new Proxy(this.server.url, Number(options.seed));
      this.url = await this.proxy.listen();
      for (const person of this.scenario.people) await this.server.register(person);
      for (const person of this.scenario.people) this.start({ who: person });
      await this.wait("all clients are online", () => this.allDrivers((one) => one.state === "online"));
      for (const step of this.scenario.steps) await this.step(step);
      await this.compare();
    } finally {
      for (const driver of this.drivers.values()) await driver.kill();
      this.proxy?.close();
      await this.server.stop();
      rmSync(this.folder, { recursive: true, force: true });
    }
  }

  async step(step) {
    const [[word, what]] = Object.entries(step);
    if (!(word in this.steps)) throw new Error(`no such step: ${word}`);
    await this.steps[word](what);
  }

  /** The steps of a scenario. */
  steps = {
    send: ({ from, to, group, count, everyMs = 0 }) => {
      const many = shortOrLong(count);
      this.sent += many;
      const where = this.where(to, group);
      this.drivers.get(from).send({ do: "send", ...where, count: many, everyMs: shortOrLong(everyMs) });
    },
    read: ({ by, to, group }) => this.drivers.get(by).send({ do: "read", ...this.where(to, group) }),
    recall: async ({ by, body }) => {
      await this.drivers.get(by).request({ do: "recall", body });
    },
    disconnect: (who) => this.drivers.get(who).send({ do: "disconnect" }),
    connect: (who) => this.drivers.get(who).send({ do: "connect" }),
    kill: async (who) => {
      await this.drivers.get(who).request({ do: "count" }); // it has handled the commands before
      await this.drivers.get(who).kill();
    },
    start: (who) => this.start(who),
    wait: (ms) => new Promise((later) => setTimeout(later, ms)),
    faults: (faults) => (this.proxy.faults = faults),
    lose: (which) => this.proxy.lose(which),
    cut: () => this.proxy.cut(),
    restart: async ({ downMs }) => {
      await this.server.stop();
      await new Promise((later) => setTimeout(later, downMs));
      await this.server.start();
      this.proxy.target = this.server.url;
    },
    group: async ({ name, owner, members }) => {
      const body = { name, member_ids: members };
      this.groups.set(name, (await this.server.as(owner, "POST", "/group/create", body)).group_id);
    },
    invite: async ({ group, by, who }) => {
      const body = { group_id: this.groups.get(group), user_ids: who };
      await this.server.as(by, "POST", "/group/invite", body);
    },
    state: ({ of, is }) => this.wait(`${of} is ${is}`, () => this.drivers.get(of).state === is),
    unread: ({ of, to, group, is }) =>
      this.wait(`${of} has ${is} unread`, async () => {
        const { conversations } = await this.drivers.get(of).request({ do: "count" });
        const { id } = this.where(to, group, of);
        return conversations[id]?.unread === is;
      }),
    settle: (seconds) => this.wait("all is settled", () => this.isSettled(), seconds * 1000),
  };

  start({ who, as = who, platform = 5 }) {
    const { url, server } = this;
    const store = join(this.folder, `${who}.store`);
    const timing = { ...TIMING, ...this.scenario.timing };
    const given = { url, user: as, password: server.password, platform, store, timing };
    this.drivers.set(who, new Driver(options.sdk, given));
  }

  where(to, group, from = "") {
    if (group === undefined) return { to, id: `si_${[from, to].sort().join("_")}` };
    const groupId = this.groups.get(group);
    return { groupId, id: `sg_${groupId}` };
  }

  allDrivers(is) {
    return [...this.drivers.values()].every(is);
  }

  get alive() {
    return [...this.drivers.values()].filter((one) => one.state !== "kicked");
  }

  /** Whether everything is sent and all members of a conversation have the same last message. */
  async isSettled() {
    const ends = new Map();
    for (const driver of this.alive) {
      const { conversations } = await driver.request({ do: "count" });
      for (const [id, { last, unsent }] of Object.entries(conversations)) {
        if (unsent > 0 || (ends.has(id) && ends.get(id) !== last)) return false;
        ends.set(id, last);
      }
    }
    return [...ends.values()].reduce((sum, end) => sum + end, 0) >= this.sent;
  }

  /** Compares all clients with the server; retries, since messages may be late. */
  async compare() {
    this.proxy.faults = {};
    const isStrict = this.scenario.policy === undefined || this.scenario.policy === "multi";
    for (let tries = isStrict ? 10 : 1; ; tries -= 1) {
      const reports = [];
      for (const driver of this.alive) reports.push([driver.user, await driver.request({ do: "report" })]);
      const found = [];
      for (const [person, report] of reports) {
        found.push(...(await differences(this.server, person, report)));
      }
      if (this.scenario.inOrder) {
        for (const [person, { conversations }] of reports) {
          const isGood = conversations.every(({ messages }) => isInOrder(messages));
          if (!isGood) found.push(`${person} has messages out of the order they were sent in`);
        }
      }
      if (found.length === 0) return;
      if (tries === 1) throw new Error(found.join("\n  "));
      await new Promise((later) => setTimeout(later, 500));
    }
  }

  async wait(what, is, ms = 10_000) {
    const end = Date.now() + ms;
    while (!(await is())) {
      if (Date.now() > end) throw new Error(`never: ${what}`);
      await new Promise((later) => setTimeout(later, 50));
    }
  }
}

const files = readdirSync(HERE).filter((file) => file.endsWith(".json"));
let failed = 0;
for (const file of files.sort()) {
  const scenario = JSON.parse(readFileSync(join(HERE, file), "utf8"));
  if (names.length > 0 && !names.includes(file.replace(".json", ""))) continue;
  const began = Date.now();
  const run = new Run(scenario);
  try {
    await run.run();
    const counts = Object.entries(run.proxy.counts).map(([word, many]) => `${many} ${word}`);
    const seconds = ((Date.now() - began) / 1000).toFixed(1);
    console.log(`ok    ${scenario.name} (${seconds} s, ${run.sent} sent; ${counts.join(", ")})`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${scenario.name} (seed ${options.seed})\n  ${error.message}`);
  }
}
process.exitCode = failed > 0 ? 1 : 0;
