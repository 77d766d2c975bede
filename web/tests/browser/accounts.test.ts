import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, World } from "./world.ts";

let world: World;

beforeAll(async () => {
  world = await World.start();
});

afterAll(() => world?.stop());

test("a server that takes no new accounts says so", async () => {
  const closed = await World.start({ NEXO_AUTH__REGISTRATION: "closed" });
  const guest = await closed.guest();
  await guest.page.getByText("This server does not accept new accounts.").waitFor();
  expect(await guest.page.getByRole("button", { name: "Create an account" }).count()).toBe(0);
  await closed.stop();
});

test("a disabled account is told so, on the open page and at sign-in, until it is enabled", async () => {
  const { server } = world;
  const dora = await world.person("dora", { nickname: "Dora" });
  dora.allow(/status of 40[13]/);
  const token = await server.token("dora");
  const isConnected = async () =>
    (await server.ask<Array<{ is_online: boolean }>>("GET", "/user/devices", undefined, token)).some((one) => one.is_online);
  await expect.poll(isConnected).toBe(true); // the socket says why the sign-in ends
  await server.operate("/admin/users/dora/disable", { reason: "test" });
  const { page } = dora;
  await page.getByRole("heading", { name: "This account is disabled" }).waitFor();
  await page.getByText("The administrator of this server disabled your account.").waitFor();
  const again = async () => {
    await page.locator("input[type=password]").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in again" }).click();
  };
  await again();
  await page.getByText("This account is disabled. Ask the administrator").waitFor();
  await page.getByRole("button", { name: "Use another account" }).click();
  await page.getByRole("heading", { name: "Welcome back" }).waitFor(); // nothing of the sign-in is left
  await page.getByRole("textbox", { name: "User ID" }).fill("dora");
  await page.locator("input[name=password]").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText("This account is disabled.").waitFor();
  await server.operate("/admin/users/dora/enable");
  await page.getByRole("button", { name: "Sign in" }).click();
  await dora.online();
  await dora.context.close(); // the server is restarted below
});

test("whoever forgot the password sets a new one with a code of the operator", async () => {
  const { server } = world;
  await server.register("cora", "Cora");
  await server.halt("SIGTERM"); // a running server locks its folder
  const code = /[A-Z2-7]{4}(-[A-Z2-7]{4}){3}/.exec(await server.tool("user", "reset-code", "cora"))?.[0] ?? "";
  await server.run();
  const guest = await world.guest();
  guest.allow(/status of 401/);
  const { page } = guest;
  await page.getByRole("textbox", { name: "User ID" }).fill("cora");
  await page.getByRole("button", { name: "Forgot your password?" }).click();
  expect(await page.getByRole("textbox", { name: "User ID" }).inputValue()).toBe("cora");
  const set = async (text: string, password: string) => {
    await page.getByRole("textbox", { name: "Reset code" }).fill(text);
    await page.locator("input[name=password]").fill(password);
    await page.getByRole("button", { name: "Set the new password" }).click();
  };
  await set("abc", "short");
  await page.getByText("A reset code has 16 letters and digits.").waitFor();
  await page.getByText("At least 8 characters, please.").waitFor();
  await set("AAAA-BBBB-CCCC-DDDD", "a new horse");
  await page.getByText("Incorrect user ID or code").waitFor();
  await set(code.toLowerCase().replaceAll("-", " "), "a new horse");
  await guest.online();

  const again = await world.guest();
  again.allow(/status of 401/);
  await again.page.getByRole("textbox", { name: "User ID" }).fill("cora");
  await again.page.locator("input[name=password]").fill(PASSWORD);
  await again.page.getByRole("button", { name: "Sign in" }).click();
  await again.page.getByText("Incorrect user ID or password.").waitFor();
  await again.page.locator("input[name=password]").fill("a new horse");
  await again.page.getByRole("button", { name: "Sign in" }).click();
  await again.online();
});
