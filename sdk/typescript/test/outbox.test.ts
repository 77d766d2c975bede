import { beforeEach, expect, test } from "vitest";

import type { OutboxEntry } from "../src/lane.js";
import { Outbox } from "../src/outbox.js";
import { RateLimiter } from "../src/rateLimiter.js";
import { MemoryStore } from "../src/storage.js";
import { defaultTiming } from "../src/timing.js";
import { calm, FakeClock } from "./fake.js";

const limits = {
  frameBytesMax: 1000,
  textCharsMax: 100,
  connectionFramesPerSecond: 0,
  userSendsPerSecond: 0,
  userRequestsPerSecond: 0,
  idleTimeoutMs: 0,
  groupMembersMax: 0,
  mentionsMax: 0,
};

let clock: FakeClock;
let store: MemoryStore;
let wire: string[];
let outbox: Outbox;
let refusals: string[];

function open(): Outbox {
  const write = (text: string) => {
    wire.push((JSON.parse(text) as { clientMsgId: string }).clientMsgId);
    return true;
  };
  const timing = { ...defaultTiming, silenceMs: 1000, sendWindow: 4 };
  const opened = new Outbox("me", clock, timing, store, new RateLimiter(clock), write);
  opened.onRefused = ({ clientMsgId }, reason) => refusals.push(`${clientMsgId} ${reason}`);
  return opened;
}

function say(name: string, to = "you", body = name): OutboxEntry {
  const conversationId = `si_me_${to}`;
  return outbox.add({ clientMsgId: name, conversationId, address: { to }, type: "TEXT", body, at: 0 });
}

/** The client message ids written since the last call. */
const written = () => wire.splice(0).join(" ");

/** As an answer of the server. */
function saved(name: string, to = "you"): void {
  outbox.answered(`si_me_${to}`, name);
  outbox.saved(`si_me_${to}`, name);
}

beforeEach(() => {
  clock = new FakeClock();
  store = new MemoryStore();
  wire = [];
  refusals = [];
  outbox = open();
});

test("waits for a connection, then keeps a window on the wire", () => {
  for (const name of ["1", "2", "3", "4", "5", "6"]) say(name);
  expect(written()).toBe("");
  outbox.online(limits);
  expect(written()).toBe("1 2 3 4");
  saved("1");
  saved("2");
  expect(written()).toBe("5 6");
});

test("after a new connection everything unanswered goes again, in order", () => {
  outbox.online(limits);
  for (const name of ["1", "2", "3"]) say(name);
  saved("2");
  outbox.offline();
  say("4");
  written();
  outbox.online(limits);
  expect(written()).toBe("1 3 4");
});

test("after a silence everything unanswered goes again, each time later", async () => {
  outbox.online(limits);
  say("1");
  say("2");
  expect(written()).toBe("1 2");
  await clock.pass(999);
  expect(written()).toBe("");
  await clock.pass(1);
  expect(written()).toBe("1 2");
  await clock.pass(1999);
  expect(written()).toBe("");
  await clock.pass(1);
  expect(written()).toBe("1 2");
  saved("1");
  saved("2");
  await clock.pass(60_000);
  expect(written()).toBe("");
});

test("an answer out of turn shows what was lost; that of a second try shows nothing", () => {
  outbox.online(limits);
  for (const name of ["1", "2", "3"]) say(name);
  written();
  saved("2");
  expect(written()).toBe("1");
  say("4");
  written();
  saved("4");
  expect(written()).toBe("1 3");
  saved("3");
  expect(written()).toBe("");
});

test("what a pull shows to be saved proves nothing about the wire", () => {
  outbox.online(limits);
  for (const name of ["1", "2"]) say(name);
  written();
  outbox.saved("si_me_you", "2");
  expect(written()).toBe("");
  expect(outbox.size).toBe(1);
});

test("a busy server is given time, and the conversation goes again in order", async () => {
  outbox.online(limits);
  for (const name of ["1", "2", "3"]) say(name);
  say("x", "other");
  written();
  outbox.refused("1", "server_busy");
  saved("x", "other");
  expect(written()).toBe("");
  await clock.pass(1000);
  expect(written()).toBe("1");
  saved("1");
  expect(written()).toBe("2 3");
  expect(refusals).toEqual([]);
});

test("the refusals of one burst cost one pause, and one message asks whether it is over", async () => {
  outbox.online(limits);
  for (const name of ["1", "2", "3", "4"]) say(name);
  written();
  const burst = () => ["1", "2", "4"].forEach((name) => outbox.refused(name, "server_busy"));
  burst();
  saved("3"); // of the same burst
  expect(written()).toBe("");
  await clock.pass(750);
  expect(written()).toBe("1");
  outbox.refused("1", "server_busy");
  await clock.pass(999);
  expect(written()).toBe("");
  await clock.pass(1);
  expect(written()).toBe("1");
  saved("1");
  expect(written()).toBe("2 4");
});

test("other refusals are final, are kept, and can be tried again or forgotten", async () => {
  outbox.online(limits);
  say("1");
  say("2");
  outbox.refused("1", "not_group_member");
  expect(refusals).toEqual(["1 not_group_member"]);
  outbox.refused("1", "not_group_member");
  expect(refusals.length).toBe(1);
  await calm();
  expect((await store.list("outbox/me/")).length).toBe(2);
  written();
  outbox.retry("1");
  expect(written()).toBe("1");
  outbox.refused("1", "not_group_member");
  outbox.discard("1");
  saved("2");
  await calm();
  expect(await store.list("outbox/me/")).toEqual([]);
});

test("a frame that is too large is refused here, not tried for ever", () => {
  outbox.online(limits);
  say("1", "you", "é".repeat(600));
  say("2");
  expect(written()).toBe("2");
  expect(refusals).toEqual(["1 frame_too_large"]);
});

test("accepted is not saved: it is asked after", async () => {
  outbox.online(limits);
  say("1");
  await clock.pass(900);
  outbox.accepted("si_me_you", "1");
  written();
  await clock.pass(900);
  expect(written()).toBe("");
  await clock.pass(200);
  expect(written()).toBe("1");
});

test("a reload goes on in order, with the same names", async () => {
  for (const name of ["1", "2", "3"]) say(name);
  saved("2");
  await calm();
  outbox = open();
  const left = await outbox.load();
  expect(left.map(({ clientMsgId }) => clientMsgId)).toEqual(["1", "3"]);
  say("4");
  outbox.online(limits);
  expect(written()).toBe("1 3 4");
});

test("keeps below the server's rate and serves conversations in turn", async () => {
  outbox.online({ ...limits, userSendsPerSecond: 4 });
  for (const name of ["a1", "a2", "a3", "a4"]) say(name, "a");
  for (const name of ["b1", "b2"]) say(name, "b");
  expect(written()).toBe("a1 a2 a3");
  await clock.pass(900);
  expect(wire).toContain("b1");
  expect(wire.length).toBeLessThanOrEqual(4);
});
