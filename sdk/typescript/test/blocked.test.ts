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

/** Heads have been compared, and what they showed to be missing would have come. */
async function looked(client: Client): Promise<void> {
  client.refresh();
  await new Promise((done) => setTimeout(done, 1_200));
}

test("a blocked conversation brings nothing new until it is unblocked, then everything, on every device", async () => {
  await bob.saved(bob.send({ to: "alice" }, "before"));
  await until(() => bodies(alice).length === 1, "it is here");
  const tablet = server.client();
  await tablet.login("alice", "password-1");
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
