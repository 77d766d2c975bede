import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, type Person, World } from "./world.ts";

let world: World;
let anna: Person;

beforeAll(async () => {
  world = await World.start();
  anna = await world.person("anna", { nickname: "Anna" });
});

afterAll(() => world?.stop());

/** Signs in on a device of this kind, without a page; returns its token. */
async function signIn(platform_id: number): Promise<string> {
  const body = { user_id: "anna", password: PASSWORD, platform_id };
  return (await world.server.ask<{ token: string }>("POST", "/auth/login", body)).token;
}

const isSignedIn = (token: string) =>
  world.server.ask("GET", "/user/info", undefined, token).then(
    () => true,
    () => false,
  );

const section = () => anna.page.getByRole("region", { name: "Devices" });

test("devices are listed, this one first", async () => {
  await signIn(1);
  const other = await world.guest();
  await other.signIn("anna");
  await anna.page.getByRole("link", { name: "Settings" }).first().click();
  const rows = section().getByRole("listitem");
  await expect.poll(() => rows.count()).toBe(3);
  const [first, second, third] = await rows.allInnerTexts();
  expect(first).toMatch(/Browser\s+This device\s+Online\s+127\.0\.0\.1/);
  expect(second).toMatch(/Browser\s+Online\s+127\.0\.0\.1\s+Sign out/); // newest first
  expect(third).toMatch(/iOS\s+Last used: just now\s+127\.0\.0\.1\s+Sign out/);
  expect(await rows.first().getByRole("button").count()).toBe(0);
});

test("one device is signed out, by keyboard, and its page says so", async () => {
  const other = await world.guest();
  await other.signIn("anna");
  const { page } = anna;
  await page.reload();
  const rows = section().getByRole("listitem");
  await expect.poll(() => rows.count()).toBe(4);
  await section().getByRole("button", { name: "Sign out Browser, 127.0.0.1" }).first().focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Browser will have to sign in again.").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(await rows.count()).toBe(4);
  await page.keyboard.press("Enter"); // the focus is where it was
  await dialog.getByRole("button", { name: "Sign out" }).press("Enter");
  await page.getByText("The device was signed out.").waitFor();
  await expect.poll(() => rows.count()).toBe(3);
  await other.page.getByRole("heading", { name: "Your sign-in has ended" }).waitFor();
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("devices");
});

test("all other devices are signed out, this one stays", async () => {
  const [phone, laptop] = [await signIn(2), await signIn(4)];
  const { page } = anna;
  await page.reload();
  const rows = section().getByRole("listitem");
  await expect.poll(() => rows.count()).toBe(5);
  await section().getByRole("button", { name: "Sign out of all other devices" }).click();
  await page.getByRole("dialog").getByText("Only this device stays signed in.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Sign out of all other devices" }).click();
  await page.getByText("4 devices were signed out.").waitFor();
  await expect.poll(() => rows.count()).toBe(1);
  expect(await section().getByRole("button").count()).toBe(0);
  expect([await isSignedIn(phone), await isSignedIn(laptop)]).toEqual([false, false]);
  await page.reload();
  await expect.poll(() => rows.count()).toBe(1);
});
