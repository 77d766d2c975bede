import { afterAll, beforeAll, expect, test } from "vitest";

import type { Client } from "../src/index.js";
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

const bodies = (client: Client) => client.messages({ to: "bob" }).map((message) => message.body);

/** Heads were compared meanwhile; a missing message would have been pulled. */
async function looked(client: Client): Promise<void> {
  client.refresh();
  await new Promise((done) => setTimeout(done, 1_200));
}

test("a blocked conversation brings nothing new until it is unblocked, then everything, on every device", async () => {
  await bob.saved(bob.send({ to: "alice" }, "before"));
  await until(() => bodies(alice).length === 1, "it is here");
  const tablet = server.client();
  await tablet.login("alice", "test-password-1");
  await until(() => bodies(tablet).length === 1, "there, too");
  await alice.receive({ to: "bob" }, "blocked");
  await until(() => tablet.conversation({ to: "bob" })?.receive === "blocked", "the tablet knows");

  await bob.saved(bob.send({ to: "alice" }, "one"));
  await bob.saved(bob.send({ to: "alice" }, "two"));
  await Promise.all([looked(alice), looked(tablet)]);
  expect([bodies(alice), bodies(tablet)]).toEqual([["before"], ["before"]]);
  tablet.disconnect();
  tablet.connect();
  await looked(tablet);
  expect(bodies(tablet)).toEqual(["before"]);

  const heard: string[] = [];
  alice.on("message", (message) => heard.push(message.body));
  await alice.receive({ to: "bob" }, "normal");
  await until(() => bodies(alice).length === 3 && bodies(tablet).length === 3, "everything");
  expect(bodies(alice)).toEqual(["before", "one", "two"]);
  expect(heard).toEqual(["one", "two"]);
});

test("somebody who has not written is blocked on every device, before the first message", async () => {
  const carol = await server.person("carol");
  const dave = await server.person("dave");
  const told: string[] = [];
  carol.on("conversation", ({ id, receive }) => told.push(`${id} ${receive}`));
  await carol.receive({ to: "dave" }, "blocked");
  expect(carol.conversation({ to: "dave" })?.receive).toBe("blocked");
  await until(() => told.includes("si_carol_dave blocked"), "an app can show it");
  await expect(carol.receive({ to: "nobody" }, "blocked")).rejects.toMatchObject({ reason: "conversation_not_found" });
  // A device that signs in later knows it before it hears of him.
  const tablet = server.client();
  await tablet.login("carol", "test-password-1");
  await until(() => tablet.conversation({ to: "dave" })?.receive === "blocked", "the tablet knows");
  for (const device of [carol, tablet]) expect(device.conversations()).toEqual([]);

  await dave.saved(dave.send({ to: "carol" }, "hello"));
  await Promise.all([looked(carol), looked(tablet)]);
  const said = (client: Client) => client.messages({ to: "dave" }).map((message) => message.body);
  for (const device of [carol, tablet]) {
    expect(said(device)).toEqual([]);
    expect(device.conversations().map(({ receive }) => receive)).toEqual(["blocked"]);
  }
  await carol.receive({ to: "dave" }, "normal");
  await until(() => said(carol).length === 1 && said(tablet).length === 1, "everything");
});
