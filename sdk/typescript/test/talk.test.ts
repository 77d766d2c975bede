import { afterAll, beforeAll, expect, test } from "vitest";

import type { Client, Message } from "../src/index.js";
import { Refused } from "../src/index.js";
import { Server, until } from "./server.js";

let server: Server;
let alice: Client;
let bob: Client;

beforeAll(async () => {
  server = await Server.start();
  alice = await server.person("alice");
  bob = await server.person("bob");
});

afterAll(() => server.stop());

const bodies = (client: Client, other: string) => client.messages({ to: other }).map((m) => m.body);

test("a message goes from sending to read", async () => {
  const states: string[] = [];
  alice.on("update", (message) => states.push(message.state));
  const heard: Message[] = [];
  bob.on("message", (message) => heard.push(message));
  const sent = alice.send({ to: "bob" }, "Hello, <b>Bob</b>");
  expect(sent.state).toBe("sending");
  const saved = await alice.saved(sent);
  expect(saved.seq).toBe(1);
  await until(() => heard.length === 1, "bob hears it");
  expect(heard[0]?.body).toBe("Hello, <b>Bob</b>");
  expect(bob.conversation({ to: "alice" })?.unread).toBe(1);
  await until(() => states.includes("delivered"), "delivered");
  bob.markRead({ to: "alice" });
  expect(bob.conversation({ to: "alice" })?.unread).toBe(0);
  await until(() => states.includes("read"), "read");
  expect(states).toEqual(["saved", "delivered", "read"]);
});

test("a device that comes later sees how far a message has come", async () => {
  const [carol, dave] = [await server.person("carol"), await server.person("dave")];
  await carol.saved(carol.send({ to: "dave" }, "are you there?"));
  const state = (client: Client) => client.messages({ to: "dave" }).at(-1)?.state;
  await until(() => state(carol) === "delivered", "delivered");
  const tablet = server.client();
  await tablet.login("carol", "test-password-1");
  await until(() => state(tablet) === "delivered", "the tablet knows");
  dave.markRead({ to: "carol" });
  await until(() => state(carol) === "read" && state(tablet) === "read", "read");
});

test("an answer reads what came before", async () => {
  await alice.saved(alice.send({ to: "bob" }, "one"));
  await until(() => bob.conversation({ to: "alice" })?.unread === 1, "unread");
  await bob.saved(bob.send({ to: "alice" }, "two"));
  expect(bob.conversation({ to: "alice" })?.unread).toBe(0);
  await until(() => bodies(alice, "bob").at(-1) === "two", "the answer");
  expect(alice.messages({ to: "bob" }).at(-2)?.state).toBe("read");
  expect(bodies(alice, "bob")).toEqual(bodies(bob, "alice"));
});

test("a refusal is final, and can be tried again or forgotten", async () => {
  const sent = alice.send({ to: "nobody" }, "Hello?");
  await expect(alice.saved(sent)).rejects.toThrow(Refused);
  const [message] = alice.messages({ to: "nobody" });
  expect(message).toMatchObject({ state: "refused", reason: "user_not_found" });
  alice.retry(sent.clientMsgId);
  expect(alice.messages({ to: "nobody" })[0]?.state).toBe("sending");
  await expect(alice.saved(sent)).rejects.toThrow(Refused);
  alice.discard(sent.clientMsgId);
  expect(alice.messages({ to: "nobody" })).toEqual([]);
});

test("a recall takes the text away on both sides", async () => {
  const saved = await alice.saved(alice.send({ to: "bob" }, "Oops"));
  await until(() => bodies(bob, "alice").includes("Oops"), "bob has it");
  await alice.recall(saved.serverMsgId);
  const revoked = () => bob.messages({ to: "alice" }).at(-1)?.isRecalled;
  await until(revoked, "bob hears of it");
  expect(bodies(bob, "alice")).not.toContain("Oops");
  expect(alice.messages({ to: "bob" }).at(-1)?.isRecalled).toBe(true);
});

test("another device of mine has the same, and hears what I read", async () => {
  await bob.saved(bob.send({ to: "alice" }, "to both of you"));
  const other = server.client();
  await other.login("alice", "test-password-1");
  await until(() => other.state.name === "online", "online");
  await until(() => bodies(other, "bob").includes("to both of you"), "the last message");
  await until(() => other.conversation({ to: "bob" })?.unread === 1, "unread there");
  await until(() => alice.conversation({ to: "bob" })?.unread === 1, "unread here");
  alice.markRead({ to: "bob" });
  await until(() => other.conversation({ to: "bob" })?.unread === 0, "read there");
  while ((await other.loadOlder({ to: "bob" }, 2)).length > 0);
  expect(bodies(other, "bob")).toEqual(bodies(alice, "bob"));
  const sent = other.send({ to: "bob" }, "from the other one");
  await until(() => bodies(alice, "bob").at(-1) === "from the other one", "here too");
  expect((await other.saved(sent)).isMine).toBe(true);
});

test("somebody is writing until they have said it", async () => {
  const heard: boolean[] = [];
  bob.on("typing", ({ isTyping }) => heard.push(isTyping));
  alice.typing({ to: "bob" });
  alice.typing({ to: "bob" });
  await until(() => heard.length === 1, "writing");
  alice.send({ to: "bob" }, "this");
  await until(() => heard.length === 2, "done");
  expect(heard).toEqual([true, false]);
});

test("profiles, presence, readers, choices", async () => {
  expect((await alice.people.update({ nickname: "Alice A." })).nickname).toBe("Alice A.");
  expect((await bob.people.get("alice")).nickname).toBe("Alice A.");
  expect(await alice.people.presence(["bob"])).toMatchObject([{ userId: "bob", isOnline: true }]);
  const saved = await alice.saved(alice.send({ to: "bob" }, "read me"));
  await until(() => bodies(bob, "alice").includes("read me"), "there");
  bob.markRead({ to: "alice" });
  await until(() => alice.messages({ to: "bob" }).at(-1)?.state === "read", "read");
  const readers = await alice.readers(saved.serverMsgId);
  expect(readers).toContainEqual({ userId: "bob", hasRead: true });
  await alice.pin({ to: "bob" }, true);
  await alice.receive({ to: "bob" }, "silent");
  expect(alice.conversation({ to: "bob" })).toMatchObject({ isPinned: true, receive: "silent" });
});

test("what is said under the name of others' conversation leaves the outbox, to one of them", async () => {
  const erin = await server.person("erin");
  const saved = await erin.saved(erin.send("si_alice_bob", "wrong door"));
  expect(saved).toMatchObject({ conversationId: "si_alice_erin", state: "saved", seq: 1 });
  expect(erin.conversations().map(({ id }) => id)).toEqual(["si_alice_erin"]);
});

test("writing to somebody one has never spoken with troubles nobody", async () => {
  await server.person("dora");
  const problems: Error[] = [];
  const off = alice.on("problem", (problem) => problems.push(problem));
  alice.typing({ to: "dora" });
  await alice.saved(alice.send({ to: "bob" }, "later than that")); // a connection answers in order
  expect(problems).toEqual([]);
  off();
});

test("what an app adds to a message is carried", async () => {
  const extra = { colour: "red" };
  const sent = alice.send({ to: "bob" }, "look", { extra });
  expect(sent.extra).toEqual(extra);
  await alice.saved(sent);
  await until(() => bodies(bob, "alice").at(-1) === "look", "bob sees it");
  expect(bob.messages({ to: "alice" }).at(-1)?.extra).toEqual(extra);
  const later = server.client();
  await later.login("bob", "test-password-1");
  await until(() => later.conversation({ to: "alice" }) !== undefined, "the list");
  const older = await later.loadOlder({ to: "alice" });
  const seen = [...older, ...later.messages({ to: "alice" })];
  expect(seen.find(({ body }) => body === "look")?.extra).toEqual(extra);
});

test("a new name or picture is seen at once", async () => {
  const people: Array<{ userId: string; nickname: string; avatar: string }> = [];
  bob.on("person", (person) => people.push({ ...person, nickname: bob.conversation({ to: "alice" })?.name ?? "" }));
  await bob.people.get("alice");
  const own: string[] = [];
  alice.on("person", ({ nickname }) => own.push(nickname));
  await alice.people.update({ nickname: "Alice L.", avatar: "a.png" });
  await until(() => people.length === 1 && own.length === 1, "both hear it");
  // The summary is updated before the event.
  expect(people).toEqual([{ userId: "alice", nickname: "Alice L.", avatar: "a.png" }]);
  expect(bob.conversation({ to: "alice" })).toMatchObject({ name: "Alice L.", avatar: "a.png" });
  expect(bob.people.known("alice")).toMatchObject({ nickname: "Alice L.", avatar: "a.png" });
  expect(own).toEqual(["Alice L."]);
});
