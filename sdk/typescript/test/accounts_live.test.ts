import { afterEach, expect, test } from "vitest";

import { Server, until } from "./server.js";

let server: Server;
afterEach(() => server.stop());

test("where an invitation is needed, its code makes one account", async () => {
  server = await Server.start({ NEXO_AUTH__REGISTRATION: "invite" });
  const { code } = await server.operate<{ code: string }>("POST", "/admin/invites");
  const client = server.client();
  const user = { userId: "alice", nickname: "Alice", password: "test-password-1" };
  const refused = { reason: "invite_invalid" };
  await expect(client.register(user)).rejects.toMatchObject(refused);
  await expect(client.register({ ...user, invite: "wrong" })).rejects.toMatchObject(refused);
  expect((await client.register({ ...user, invite: code })).userId).toBe("alice");
  await expect(client.register({ ...user, userId: "bob", invite: code })).rejects.toMatchObject(refused);
});

test("the backend signs a user in, and the operator disables the account", async () => {
  server = await Server.start();
  const body = { platform_id: 5, create: true, nickname: "Carol" };
  const login = () =>
    server.operate<{ token: string; refresh_token: string; expires_in: number; user_info: { user_id: string } }>(
      "POST",
      "/admin/users/carol/login",
      body,
    );
  const granted = await login();
  const carol = server.client();
  await carol.loginWithTokens({
    userId: granted.user_info.user_id,
    token: granted.token,
    refreshToken: granted.refresh_token,
    expiresIn: granted.expires_in,
  });
  await carol.ready();
  expect(carol.me).toBe("carol");
  await server.operate("POST", "/admin/users/carol/disable", { reason: "test" });
  await until(() => carol.state.name === "signedOut", "signed out");
  expect(carol.state).toEqual({ name: "signedOut", reason: "account_disabled" });
  expect(await carol.resume()).toBe(false);
  await expect(login()).rejects.toThrow("account_disabled");
  await server.operate("POST", "/admin/users/carol/enable");
  expect((await login()).user_info.user_id).toBe("carol");
});

test("one sign-in is ended, or all others", async () => {
  server = await Server.start();
  const web = await server.person("alice", { platform: 5 });
  const others = [1, 2, 3].map((platform) => server.client({ platform }));
  for (const other of others) {
    await other.login("alice", "test-password-1");
    await until(() => other.state.name === "online", "online");
  }
  const [phone, tablet, laptop] = others as [typeof web, typeof web, typeof web];
  const devices = await web.devices();
  expect(devices.map(({ platform }) => platform)).toEqual(["Windows", "Android", "iOS", "Web"]);
  expect(devices.map(({ isCurrent }) => isCurrent)).toEqual([false, false, false, true]);
  expect(devices.every(({ isOnline, address }) => isOnline && address !== "")).toBe(true);

  await web.endDevice(devices[2]!.loginId);
  await until(() => phone.state.name === "signedOut", "the phone is out");
  expect(phone.state).toMatchObject({ reason: "session_invalid" });
  expect(tablet.state.name).toBe("online");
  await expect(web.endDevice(devices[2]!.loginId)).rejects.toMatchObject({ reason: "not_found" });

  expect(await web.endOtherDevices()).toBe(2);
  await until(() => [tablet, laptop].every(({ state }) => state.name === "signedOut"), "all others are out");
  expect(web.state.name).toBe("online");
  expect(await web.devices()).toMatchObject([{ platform: "Web", isCurrent: true }]);
});

test("whoever is blocked does not arrive, on any device, until the block ends", async () => {
  server = await Server.start();
  const [alice, bob] = [await server.person("alice"), await server.person("bob")];
  const tablet = server.client();
  await tablet.login("alice", "test-password-1");
  await until(() => tablet.state.name === "online", "online");
  await alice.block("bob");
  expect(await tablet.blocked()).toEqual(["bob"]);
  await until(() => tablet.conversation({ to: "bob" })?.receive === "blocked", "the tablet knows");
  await bob.saved(bob.send({ to: "alice" }, "hello"));
  expect(alice.messages({ to: "bob" })).toEqual([]);
  await tablet.unblock("bob");
  expect(await alice.blocked()).toEqual([]);
  await until(() => alice.messages({ to: "bob" }).length === 1, "it arrives");
  await expect(alice.block("nobody")).rejects.toMatchObject({ reason: "user_not_found" });
  await expect(alice.block("alice")).rejects.toMatchObject({ reason: "target_is_self" });
});

test("a stranger cannot write to who accepts nobody", async () => {
  server = await Server.start();
  const [carol, dave] = [await server.person("carol"), await server.person("dave")];
  const all = "everybody";
  expect(await carol.consent()).toEqual({ write: all, invite: all, online: all, lastSeen: all });
  expect((await carol.setConsent({ write: "nobody" })).write).toBe("nobody");
  const sent = dave.saved(dave.send({ to: "carol" }, "hello"));
  await expect(sent).rejects.toMatchObject({ reason: "not_accepting" });
  await carol.setConsent({ write: "everybody" });
  await dave.saved(dave.send({ to: "carol" }, "hello again"));
});
