// What a first program does, and its typical mistakes.
import { expect, test } from "vitest";

import { Client, Refused, Unreachable } from "../src/index.js";
import { calm, World } from "./fake.js";

test("ready waits until the conversations are known", async () => {
  const world = new World();
  const head = {
    conversation_id: "sg_team",
    min_seq: 1,
    max_seq: 0,
    delivered_seq: 0,
    read_seq: 0,
    min_change_seq: 1,
    change_seq: 0,
    unread_count: 0,
    is_active: true,
    is_pinned: false,
    recv_msg_opt: 0,
    updated_at: 5,
  };
  world.answers["/conversation/heads"] = () => ({ heads: [head], has_more: false });
  await world.client.login("me", "password");
  let isReady = false;
  const ready = world.client.ready().then(() => (isReady = true));
  await calm();
  expect(isReady).toBe(false);
  world.socket.welcome();
  await ready;
  expect(world.client.conversations().length).toBe(1);
  await world.client.ready(); // and immediately from then on
});

test("ready does not wait for a sign-in that has ended, or for none", async () => {
  const world = new World();
  await expect(world.client.ready()).rejects.toMatchObject({ reason: "missing_token" });
  await world.client.login("me", "password");
  await calm();
  const waiting = world.client.ready();
  world.socket.welcome();
  await waiting;
  world.socket.end(4004);
  const again = world.client.ready();
  await world.clock.pass(5_000);
  world.socket.open();
  world.socket.say({ type: "AUTH_FAIL", reason: "kicked" });
  world.socket.end(4403, "kicked");
  await expect(again).rejects.toMatchObject({ reason: "kicked" });
  const closed = new World();
  await closed.client.login("me", "password");
  const never = closed.client.ready();
  closed.client.close();
  await expect(never).rejects.toBeInstanceOf(Refused);
});

test("speaking before signing in says what is missing", () => {
  expect(() => new World().client.send({ to: "you" }, "Hello")).toThrow(/login/);
});

test("an address without a scheme is told at once", () => {
  for (const url of ["127.0.0.1:8080", "localhost:8080", "ws://localhost:8080", ""]) {
    expect(() => new Client({ url, webSocket: class {} as never })).toThrow(TypeError);
  }
});

test("a server that is not there is named", async () => {
  const world = new World({ fetch: () => Promise.reject(new TypeError("fetch failed")) });
  const error = await world.client.login("me", "password").catch((it: Error) => it);
  expect(error).toBeInstanceOf(Unreachable);
  expect((error as Error).message).toBe("POST http://server/auth/login: no answer");
});
