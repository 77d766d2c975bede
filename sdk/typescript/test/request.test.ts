import { afterAll, beforeAll, expect, test } from "vitest";

import { type Client, Refused } from "../src/index.js";
import { World } from "./fake.js";
import { Server } from "./server.js";

let server: Server;
let alice: Client;

beforeAll(async () => {
  server = await Server.start({ NEXO_AUTH__ACCESS_TOKEN_SECONDS: "2" });
  alice = await server.person("alice");
});

afterAll(() => server.stop());

test("a path the SDK has no method for is asked for with the token", async () => {
  const asked = await alice.request<{ user_id: string }>("GET", "/user/info", { user_id: "alice" });
  expect(asked).toMatchObject({ code: 0, data: { user_id: "alice" } });
  expect(asked.request_id).not.toBe("");
  const changed = await alice.request<{ nickname: string }>("PUT", "/user/update", { nickname: "Al" });
  expect(changed.data.nickname).toBe("Al");
  const refused = await alice.request("GET", "/group/info", { group_id: "none" }).catch((it: Error) => it);
  expect(refused).toBeInstanceOf(Refused);
});

test("the token is good outside the client too, also when the one before has died", async () => {
  const ask = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${server.url}/user/info`, { headers })).status;
  };
  const first = await alice.token();
  expect(await ask(first)).toBe(200);
  await new Promise((later) => setTimeout(later, 3_000));
  expect(await ask(first)).toBe(401);
  expect(await ask(await alice.token())).toBe(200);
  expect((await alice.request("GET", "/user/info")).code).toBe(0);
});

test("nobody signed in: what needs no token is answered, the rest is refused", async () => {
  const nobody = server.client();
  const info = await nobody.request<{ version: string }>("GET", "/server/info");
  expect(info.data.version).toMatch(/^\d+\.\d+\.\d+/);
  const refused = { reason: "missing_token" };
  await expect(nobody.request("GET", "/user/info")).rejects.toMatchObject(refused);
  await expect(nobody.token()).rejects.toMatchObject(refused);
});

test("the token goes to no other host", async () => {
  const world = new World();
  await world.online();
  const before = world.asked.length;
  for (const path of [".evil.example/x", "@evil.example/x", "https://evil.example/x"]) {
    await expect(world.client.request("GET", path)).rejects.toThrow(TypeError);
  }
  expect(world.asked.length).toBe(before);
});
