import { expect, test } from "vitest";

import { calm, World } from "./fake.js";

test("a token of the identity provider is exchanged for a sign-in", async () => {
  const world = new World({ platform: 4 });
  world.answers["/auth/token"] = () => world.grant("token-1");
  await world.client.loginWithToken("eyJ…", "Work laptop");
  await calm();
  world.socket.welcome();
  expect(world.client.me).toBe("me");
  expect(world.client.state.name).toBe("online");
  const asked = world.asked.find(({ path }) => path === "/auth/token");
  expect(asked?.body).toEqual({ token: "eyJ…", platform_id: 4, device_name: "Work laptop" });
});

test("a token that the server does not accept signs nobody in", async () => {
  const world = new World();
  world.answers["/auth/token"] = () => ({ status: 401, reason: "token_refused" });
  await expect(world.client.loginWithToken("eyJ…")).rejects.toMatchObject({ reason: "token_refused" });
  expect(world.client.me).toBeUndefined();
  expect(world.sockets).toEqual([]);
});

test("tokens of the backend sign in without a request, and are refreshed and stored as others are", async () => {
  const world = new World();
  world.answers["/auth/refresh"] = (_, body) => {
    expect(body).toEqual({ refresh_token: "theirs-refresh" });
    return world.grant("token-2");
  };
  const tokens = { userId: "me", token: "theirs", refreshToken: "theirs-refresh", expiresIn: 1800 };
  await world.client.loginWithTokens(tokens);
  await calm();
  world.socket.welcome();
  expect(world.socket.heard[0]).toEqual({ type: "AUTH", token: "theirs" });
  expect(await world.store.get("session")).toMatchObject({ userId: "me", refreshToken: "theirs-refresh" });
  world.socket.end(4100, "token_expired");
  await world.clock.pass(500);
  world.socket.welcome();
  expect(world.socket.heard[0]).toEqual({ type: "AUTH", token: "token-2" });
});

test("the code of an invite link is sent with the registration", async () => {
  const world = new World();
  world.answers["/user/register"] = () => ({ user_id: "me" });
  await world.client.register({ userId: "me", nickname: "Me", password: "password-1", invite: "abc" });
  expect(world.asked[0]?.body).toEqual({ user_id: "me", nickname: "Me", password: "password-1", invite: "abc" });
});
