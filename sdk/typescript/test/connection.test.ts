import { expect, test } from "vitest";

import type { State } from "../src/index.js";
import { calm, World } from "./fake.js";

test("says who it is, and keeps the connection alive", async () => {
  const world = new World();
  await world.online();
  expect(world.socket.heard[0]).toEqual({ type: "AUTH", token: "token-1" });
  expect(world.states).toEqual(["connecting", "online"]);
  world.socket.say({ type: "PING" });
  expect(world.socket.heard.at(-1)).toEqual({ type: "PONG" });
  await world.clock.pass(25_000);
  expect(world.socket.heard.at(-1)).toEqual({ type: "PING" });
  world.socket.say({ type: "PONG" });
  await world.clock.pass(20_000);
  expect(world.states.at(-1)).toBe("online");
});

test("a server that does not answer is left, and tried again later", async () => {
  const world = new World();
  await world.online();
  await world.clock.pass(25_000 + 10_000);
  expect(world.states.at(-1)).toBe("offline");
  expect(world.client.state).toMatchObject({ retryInMs: 250 });
  await world.clock.pass(250);
  expect(world.sockets.length).toBe(2);
  await world.clock.pass(10_000); // no AUTH_OK
  expect(world.states.at(-1)).toBe("offline");
});

test("40xx comes back with growing waits, which a good connection resets", async () => {
  const world = new World();
  const waits: Array<number | undefined> = [];
  world.client.on("state", (state) => {
    if (state.name === "offline") waits.push(state.retryInMs);
  });
  await world.online();
  for (let i = 0; i < 3; i += 1) {
    world.socket.end(4004, "shutting_down");
    await world.clock.pass(waits.at(-1) as number);
    world.socket.welcome();
  }
  await world.clock.pass(6_000);
  world.socket.end(1006);
  expect(waits).toEqual([250, 500, 1000, 250]);
});

test("whoever was too fast waits at least a second", async () => {
  const world = new World();
  await world.online();
  world.socket.end(4029, "too_many_requests");
  expect(world.client.state).toMatchObject({ retryInMs: 1250 });
});

test("41xx refreshes the token first", async () => {
  const world = new World();
  world.answers["/auth/refresh"] = () => world.grant("token-2");
  await world.online();
  world.socket.end(4100, "token_expired");
  await world.clock.pass(500);
  world.socket.open();
  expect(world.socket.heard[0]).toEqual({ type: "AUTH", token: "token-2" });
});

test.each([
  [4403, "kicked", { name: "kicked" }],
  [4401, "session_invalid", { name: "signedOut", reason: "session_invalid" }],
  [4405, "account_disabled", { name: "signedOut", reason: "account_disabled" }],
  [4404, "origin_not_allowed", { name: "signedOut", reason: "origin_not_allowed" }],
])("%i does not come back", async (code, reason, state) => {
  const world = new World();
  await world.online();
  world.socket.end(code, reason);
  await world.clock.pass(600_000);
  expect(world.client.state).toEqual(state as State);
  expect(world.sockets.length).toBe(1);
  const keepsSignIn = reason === "kicked" || reason === "origin_not_allowed";
  expect((await world.store.get("session")) !== undefined).toBe(keepsSignIn);
});

test("the server's last word counts even if its close frame is lost", async () => {
  const world = new World();
  await world.online();
  world.socket.say({ type: "ERROR", reason: "kicked", message: "" });
  world.socket.end(1006);
  expect(world.client.state).toEqual({ name: "kicked" });
});

test("a token is refreshed before it dies, once, and the socket carries on with it", async () => {
  const world = new World();
  let refreshes = 0;
  world.answers["/auth/refresh"] = () => world.grant(`token-${(refreshes += 1) + 1}`);
  await world.online();
  const live = setInterval(() => {}, 1000);
  for (let i = 0; i < 70; i += 1) {
    await world.clock.pass(25_000);
    world.socket.say({ type: "PONG" });
  }
  clearInterval(live);
  expect(refreshes).toBe(1);
  expect(world.socket.of("REAUTH")).toEqual([{ type: "REAUTH", token: "token-2" }]);
  expect(world.states.at(-1)).toBe("online");
});

test("many requests with a dead token cause one refresh", async () => {
  const world = new World();
  let refreshes = 0;
  world.answers["/auth/refresh"] = () => world.grant(`token-${(refreshes += 1) + 1}`);
  await world.online();
  let left = 3;
  world.answers["/user/info"] = () =>
    left-- > 0 ? { status: 401, reason: "token_expired" } : { user_id: "me" };
  await Promise.all([1, 2, 3].map(() => world.client.people.me()));
  expect(refreshes).toBe(1);
});

test("a refresh that is refused ends the sign-in; one that nobody answers does not", async () => {
  const world = new World();
  await world.online();
  world.socket.end(4100, "token_expired");
  await world.clock.pass(5_000); // no answer to /auth/refresh
  expect(world.client.state.name).toBe("offline");
  world.answers["/auth/refresh"] = () => ({ status: 401, reason: "invalid_refresh_token" });
  await world.clock.pass(60_000);
  expect(world.client.state).toEqual({ name: "signedOut", reason: "invalid_refresh_token" });
});

test("a disabled account is signed out by whatever tells it first: a request, a refresh or the socket", async () => {
  const disabled = () => ({ status: 403, reason: "account_disabled" });
  const requested = new World();
  await requested.online();
  requested.answers["/user/info"] = disabled;
  await expect(requested.client.people.me()).rejects.toMatchObject({ reason: "account_disabled" });
  await requested.clock.pass(2_000); // the socket may still say more
  const refreshed = new World();
  await refreshed.online();
  refreshed.answers["/auth/refresh"] = disabled;
  refreshed.socket.end(4100, "token_expired");
  await refreshed.clock.pass(1_000);
  const told = new World();
  await told.online();
  told.socket.say({ type: "ERROR", reason: "account_disabled", message: "" });
  told.socket.end(1006);
  for (const world of [requested, refreshed, told]) {
    await world.clock.pass(600_000);
    expect(world.client.state).toEqual({ name: "signedOut", reason: "account_disabled" });
    expect(world.client.me).toBeUndefined();
    expect(await world.store.get("session")).toBeUndefined();
    expect(world.sockets.length).toBe(1);
  }
});

test("a refresh whose answer got lost is asked for again, soon and often, with the same token", async () => {
  const world = new World();
  const tries: Array<{ at: number; token: string }> = [];
  let isLost = true;
  world.slow = (path, request) => {
    if (path !== "/auth/refresh") return undefined;
    const { refresh_token: token } = JSON.parse(String(request?.body)) as { refresh_token: string };
    tries.push({ at: world.clock.now(), token });
    if (!isLost) return Promise.resolve(Response.json({ code: 0, data: world.grant("token-2") }));
    return new Promise((_, fail) => {
      request?.signal?.addEventListener("abort", () => fail(new Error("no answer")));
    });
  };
  world.clock.chance = 1; // the longest waits
  await world.online();
  const live = () => world.socket.say({ type: "PING" });
  for (let i = 0; i < 58; i += 1) await world.clock.pass(30_000).then(live);
  const first = tries[0]!.at;
  for (let i = 0; i < 20; i += 1) await world.clock.pass(2_000).then(live);
  expect(tries.length).toBeGreaterThan(3);
  expect(tries[1]!.at - first).toBeLessThanOrEqual(5_000);
  expect(new Set(tries.map(({ token }) => token))).toEqual(new Set(["token-1-refresh"]));
  isLost = false;
  for (let i = 0; i < 10; i += 1) await world.clock.pass(2_000).then(live);
  expect(tries.at(-1)!.at - first).toBeLessThan(60_000);
  expect(world.socket.of("REAUTH")).toEqual([{ type: "REAUTH", token: "token-2" }]);
  expect(world.states.at(-1)).toBe("online");
});

test("another tab that refreshed first is no reason to sign out", async () => {
  const world = new World();
  await world.online();
  const kept = (await world.store.get("session")) as object;
  await world.store.set("session", { ...kept, token: "theirs", refreshToken: "theirs-too" });
  world.answers["/auth/refresh"] = () => ({ status: 401, reason: "invalid_refresh_token" });
  world.socket.end(4100, "token_expired");
  await world.clock.pass(1_000);
  world.socket.open();
  expect(world.socket.heard[0]).toEqual({ type: "AUTH", token: "theirs" });
});

test("a reload goes on with the sign-in and with what was not sent", async () => {
  const world = new World();
  await world.online();
  world.socket.end(1006);
  const { clientMsgId } = world.client.send({ to: "you" }, "later");
  world.client.close();
  await calm();
  const next = new World({ store: world.store });
  expect(await next.client.resume()).toBe(true);
  await calm();
  expect(next.client.messages({ to: "you" })).toMatchObject([{ clientMsgId, state: "sending" }]);
  next.socket.welcome();
  expect(next.socket.of("SINGLE_CHAT")).toMatchObject([{ clientMsgId, body: "later", to: "you" }]);
});

test("what an earlier sign-in still hears does nothing to the next one", async () => {
  const world = new World();
  await world.online();
  const late: Array<(response: Response) => void> = [];
  const answer = (status: number, body: object) => Response.json(body, { status });
  world.slow = (path) =>
    path === "/user/info" || path === "/auth/refresh"
      ? new Promise((answered) => late.push(answered))
      : undefined;
  const asked = world.client.people.me().catch((error: Error) => error);
  world.socket.end(4100, "token_expired");
  await world.clock.pass(1_000);
  expect(late.length).toBe(2); // the request and the refresh
  world.answers["/auth/login"] = () => ({ ...world.grant("theirs"), user_info: { user_id: "them" } });
  await world.client.login("them", "password");
  await calm();
  late[0]?.(answer(401, { code: 1, reason: "session_invalid" }));
  late[1]?.(answer(200, { code: 0, data: world.grant("token-2") }));
  await calm();
  expect(await asked).toMatchObject({ reason: "session_invalid" });
  expect(world.client.me).toBe("them");
  expect(await world.store.get("session")).toMatchObject({ userId: "them", token: "theirs" });
  world.socket.welcome();
  expect(world.client.state.name).toBe("online");
});

test("a refresh that is answered after signing out signs nobody in", async () => {
  const world = new World();
  await world.online();
  let answer: (response: Response) => void = () => {};
  world.slow = (path) =>
    path === "/auth/refresh" ? new Promise((answered) => (answer = answered)) : undefined;
  world.socket.end(4100, "token_expired");
  await world.clock.pass(1_000);
  world.answers["/auth/logout"] = () => ({});
  await world.client.logout();
  answer(Response.json({ code: 0, data: world.grant("token-2") }));
  await calm();
  expect(world.client.me).toBeUndefined();
  expect(await world.store.get("session")).toBeUndefined();
});

test.each([
  ["signing out", (world: World) => void world.client.logout(), "missing_token"],
  ["an ended sign-in", (world: World) => world.socket.end(4401, "session_invalid"), "session_invalid"],
  ["closing", (world: World) => world.client.close(), "missing_token"],
])("whoever waits for a message to be saved hears of %s", async (_, leave, reason) => {
  const world = new World();
  world.answers["/auth/logout"] = () => ({});
  await world.online();
  const waiting = world.client.saved(world.client.send({ to: "you" }, "never"));
  const heard = waiting.catch((error: Error) => error);
  leave(world);
  expect(await heard).toMatchObject({ name: "Refused", reason });
});

test("a ping is answered by whatever comes next, and fails with the connection", async () => {
  const world = new World();
  expect(await world.client.ping()).toBe(false); // there is no connection yet
  await world.online();
  const heard = world.client.ping();
  expect(world.socket.heard.at(-1)).toEqual({ type: "PING" });
  world.socket.say({ type: "PONG" });
  expect(await heard).toBe(true);

  const silent = world.client.ping();
  world.client.reconnect();
  expect(await silent).toBe(false);
  expect(world.states.at(-1)).toBe("offline");
  await world.clock.pass(250);
  world.socket.welcome();
  await calm();
  expect(world.sockets.length).toBe(2);
  expect(world.states.at(-1)).toBe("online");
});
