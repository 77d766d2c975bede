import { afterAll, beforeAll, expect, test } from "vitest";

import type { Client } from "../src/index.js";
import { Server, until } from "./server.js";
import { Tap } from "./tap.js";

let server: Server;
let tap: Tap;
let alice: Client;
let bob: Client;

beforeAll(async () => {
  server = await Server.start();
  tap = new Tap(server.url);
  alice = await server.person("alice");
  // The gap stays open for a while, so that the acknowledgements meanwhile can be checked.
  bob = await server.person("bob", { url: await tap.listen(), timing: { gapDelayMs: 600 } });
});

afterAll(async () => {
  await server.stop();
  tap.close();
});

const acks = () => tap.of("up", "ACK").map(({ ackType, msgSeq }) => `${ackType} ${msgSeq}`);

test("with a hole only what is before it is acknowledged; then it is filled, then the rest", async () => {
  // Each time, not once: the comparison after connecting may have the server send them again.
  const lost = new Set(["4", "5"]);
  tap.swallows = (way, { type, msgSeq }) => way === "down" && type === "SINGLE_CHAT" && lost.has(String(msgSeq));
  for (let i = 1; i <= 8; i += 1) await alice.saved(alice.send({ to: "bob" }, `${i}`));
  const arrived = () => new Set(tap.of("down", "SINGLE_CHAT").map(({ msgSeq }) => msgSeq));
  await until(() => arrived().size === 6, "the others arrive");
  await until(() => acks().at(-1) === "delivered 3", "what is before the hole is acknowledged");
  expect(bob.messages({ to: "alice" }).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  await until(() => bob.messages({ to: "alice" }).length === 8, "the gap is filled");
  await until(() => acks().at(-1) === "delivered 8", "and acknowledged");
  const places = acks().map((ack) => Number(ack.split(" ")[1]));
  expect(places.filter((place) => place > 3 && place < 8)).toEqual([]);
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(tap.asked.some((path) => path.includes("/msg/pull") && path.includes("begin_seq=4"))).toBe(true);
  const { unread } = bob.conversation({ to: "alice" }) ?? {};
  expect(unread).toBe(8);
});

test("many messages are acknowledged a few times", async () => {
  const before = acks().length;
  for (let i = 0; i < 200; i += 1) alice.send({ to: "bob" }, `many ${i}`);
  await until(() => bob.messages({ to: "alice" }).length === 208, "all of them");
  await until(() => acks().at(-1) === "delivered 208", "acknowledged");
  expect(acks().length - before).toBeLessThan(10);
});

test("an acknowledgement that got lost is told again", async () => {
  tap.swallows = (way, { type }) => way === "up" && type === "ACK";
  bob.markRead({ to: "alice" });
  await new Promise((later) => setTimeout(later, 400));
  tap.swallows = () => false;
  bob.refresh();
  await until(() => acks().at(-1) === "read 208", "acknowledged again");
  await until(() => alice.messages({ to: "bob" }).at(-1)?.state === "read", "heard");
});

test("a message without an answer goes again under the same name and is stored once", async () => {
  let lost = 0;
  tap.swallows = (way, { type, ackType }) =>
    way === "down" && type === "ACK" && ackType === "saved" && lost++ === 0;
  const saved = await bob.saved(bob.send({ to: "alice" }, "once"));
  const sent = tap.of("up", "SINGLE_CHAT").filter(({ body }) => body === "once");
  // Either the retry was answered, or comparing heads found it saved before a retry.
  expect(new Set(sent.map(({ clientMsgId }) => clientMsgId)).size).toBe(1);
  await until(() => alice.messages({ to: "bob" }).at(-1)?.body === "once", "there");
  expect(alice.messages({ to: "bob" }).filter(({ body }) => body === "once").length).toBe(1);
  expect(saved.seq).toBe(209);
});

test("a device with more than a page to catch up asks for the next one", async () => {
  bob.disconnect();
  for (let i = 0; i < 450; i += 1) alice.send({ to: "bob" }, `away ${i}`);
  await until(() => alice.messages({ to: "bob" }).every(({ seq }) => seq > 0), "all saved");
  const [resends, pulls] = [tap.of("up", "RESEND").length, tap.asked.length];
  bob.connect();
  await until(() => bob.messages({ to: "alice" }).length === 659, "all here");
  const asked = tap.of("up", "RESEND").slice(resends);
  expect(asked.length).toBeGreaterThan(0);
  expect(tap.asked.slice(pulls).filter((path) => path.includes("/msg/pull")).length).toBe(0);
  expect(bob.messages({ to: "alice" }).map(({ seq }) => seq)).toEqual(
    Array.from({ length: 659 }, (_, i) => i + 1),
  );
});
