import { afterEach, expect, test } from "vitest";

import { MemoryStore } from "../src/index.js";
import { Server, until } from "./server.js";

let server: Server;
afterEach(() => server.stop());

const pause = (ms: number) => new Promise((later) => setTimeout(later, ms));

test("single: the older one is out and does not come back by itself", async () => {
  server = await Server.start({ NEXO_SESSION__POLICY: "single" });
  const older = await server.person("alice");
  const newer = server.client({ platform: 1 });
  await newer.login("alice", "test-password-1");
  await until(() => older.state.name === "kicked", "kicked");
  await until(() => newer.state.name === "online", "online");
  await pause(1500);
  expect(older.state.name).toBe("kicked");
  expect(newer.state.name).toBe("online");
  await older.login("alice", "test-password-1"); // the user signs in again
  await until(() => older.state.name === "online", "back");
  await until(() => newer.state.name === "kicked", "the other one is out");
});

test("single: who asks for something while being put out is told the same", async () => {
  server = await Server.start({ NEXO_SESSION__POLICY: "single" });
  for (let round = 0; round < 5; round++) {
    const older = await server.person(`alice${round}`);
    await until(() => older.state.name === "online", "online");
    const newer = server.client({ platform: 1 });
    // Requests that are refused because the sign-in has ended overtake the close of the socket.
    const ask = async () => {
      while (older.state.name === "online") await older.people.me().catch(() => {});
    };
    const asking = [ask(), ask(), ask(), ask()];
    await newer.login(`alice${round}`, "test-password-1");
    await Promise.all(asking);
    expect(older.state).toEqual({ name: "kicked" });
  }
});

test("single: a device that was away learns that its sign-in has ended", async () => {
  server = await Server.start({ NEXO_SESSION__POLICY: "single" });
  const older = await server.person("alice");
  older.disconnect();
  const newer = server.client();
  await newer.login("alice", "test-password-1");
  await until(() => newer.state.name === "online", "online");
  older.connect();
  await until(() => ["kicked", "signedOut"].includes(older.state.name), "out");
  expect(newer.state.name).toBe("online");
});

test("single: the tabs of a browser share a sign-in and stay", async () => {
  server = await Server.start({ NEXO_SESSION__POLICY: "single" });
  const store = new MemoryStore();
  const one = await server.person("alice", { store });
  const two = server.client({ store });
  expect(await two.resume()).toBe(true);
  await until(() => two.state.name === "online", "the other tab");
  const states: string[] = [];
  for (const tab of [one, two]) tab.on("state", ({ name }) => states.push(name));
  await pause(1000);
  expect([one.state.name, two.state.name]).toEqual(["online", "online"]);
  expect(states).toEqual([]);
});

test("single: whoever was put out finds on going on that the sign-in has ended", async () => {
  server = await Server.start({ NEXO_SESSION__POLICY: "single" });
  const store = new MemoryStore();
  const older = await server.person("alice", { store });
  const newer = server.client();
  await newer.login("alice", "test-password-1");
  await until(() => older.state.name === "kicked", "kicked");
  expect(await older.resume()).toBe(true);
  await until(() => older.state.name === "signedOut", "refused");
  await until(() => newer.state.name === "online", "the newer one stays");
  expect(await server.client({ store }).resume()).toBe(false);
});

test("per platform: one of each kind", async () => {
  server = await Server.start({ NEXO_SESSION__POLICY: "per_platform" });
  const web = await server.person("alice", { platform: 5 });
  const phone = server.client({ platform: 1 });
  await phone.login("alice", "test-password-1");
  await until(() => phone.state.name === "online", "the phone");
  expect(web.state.name).toBe("online");
  const newerWeb = server.client({ platform: 5 });
  await newerWeb.login("alice", "test-password-1");
  await until(() => web.state.name === "kicked", "the older page is out");
  expect(phone.state.name).toBe("online");
});

test("multi: all at once", async () => {
  server = await Server.start({ NEXO_SESSION__POLICY: "multi" });
  const one = await server.person("alice");
  const two = server.client();
  await two.login("alice", "test-password-1");
  await until(() => two.state.name === "online", "both");
  await pause(300);
  expect(one.state.name).toBe("online");
});

test("tokens are renewed on an open socket before they die", async () => {
  server = await Server.start({ NEXO_AUTH__ACCESS_TOKEN_SECONDS: "2" });
  const alice = await server.person("alice");
  const states: string[] = [];
  alice.on("state", ({ name }) => states.push(name));
  await pause(5000);
  expect(states).toEqual([]);
  expect((await alice.people.me()).userId).toBe("alice");
});

test("a device that slept longer than its token refreshes and comes back", async () => {
  server = await Server.start({ NEXO_AUTH__ACCESS_TOKEN_SECONDS: "1" });
  const store = new MemoryStore();
  const before = await server.person("alice", { store });
  before.close();
  await pause(1500);
  const after = server.client({ store });
  expect(await after.resume()).toBe(true);
  await until(() => after.state.name === "online", "back");
});

test("signing out and a new password end it everywhere at once", async () => {
  server = await Server.start();
  const one = await server.person("alice");
  const two = server.client();
  await two.login("alice", "test-password-1");
  await until(() => two.state.name === "online", "both");
  await one.logout();
  expect(one.state).toEqual({ name: "signedOut", reason: "logout" });
  expect(two.state.name).toBe("online");
  await two.changePassword("test-password-1", "test-password-2");
  await until(() => two.state.name === "signedOut", "out");
  await expect(one.login("alice", "test-password-1")).rejects.toThrow("wrong");
  await one.login("alice", "test-password-2");
  await until(() => one.state.name === "online", "in again");
});

test("stays below the server's limits, however much there is to say", async () => {
  server = await Server.start({
    NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND: "60",
    NEXO_LIMITS__USER_SENDS_PER_SECOND: "30",
  });
  const alice = await server.person("alice");
  await server.person("bob");
  const states: string[] = [];
  alice.on("state", ({ name }) => states.push(name));
  for (let i = 0; i < 120; i += 1) alice.send({ to: "bob" }, `${i}`);
  await until(() => alice.messages({ to: "bob" }).every(({ seq }) => seq > 0), "all saved", 10_000);
  expect(states).toEqual([]);
});

test("a restarted server is found again, and nothing is lost", async () => {
  server = await Server.start();
  const alice = await server.person("alice");
  await server.person("bob");
  await alice.saved(alice.send({ to: "bob" }, "before"));
  await server.halt();
  await until(() => alice.state.name !== "online", "away");
  const sent = alice.send({ to: "bob" }, "meanwhile");
  await server.run(new URL(server.url).host);
  expect((await alice.saved(sent)).seq).toBe(2);
});
