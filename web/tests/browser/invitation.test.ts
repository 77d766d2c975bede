import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, type Person, World } from "./world.ts";

let world: World;

beforeAll(async () => {
  world = await World.start({ NEXO_AUTH__REGISTRATION: "invite" });
});

afterAll(() => world?.stop());

async function invitation(): Promise<{ code: string; path: string }> {
  return world.server.operate("/admin/invites");
}

async function fill({ page }: Person, id: string): Promise<void> {
  await page.getByRole("textbox", { name: "User ID" }).fill(id);
  await page.getByRole("textbox", { name: "Display name" }).fill(id);
  await page.locator("input[name=password]").fill(PASSWORD);
}

test("an invite link opens sign-up with its code, which makes one account", async () => {
  const { code, path } = await invitation();
  const guest = await world.guest();
  const { page } = guest;
  await page.goto(world.site.url + path);
  await page.getByRole("heading", { name: "Nice to meet you" }).waitFor();
  const field = page.getByRole("textbox", { name: "Invitation code" });
  expect(await field.inputValue()).toBe(code);
  await fill(guest, "anna");
  await page.getByRole("button", { name: "Create an account" }).click();
  await guest.online();
  expect(page.url()).not.toContain("invite"); // it is used up

  const late = await world.guest();
  late.allow(/status of 403/);
  await late.page.goto(world.site.url + path);
  await fill(late, "ben");
  await late.page.getByRole("button", { name: "Create an account" }).click();
  await late.page.getByText("This invitation is not valid (any more).").waitFor();
  const isFocused = () => late.page.evaluate(() => (document.activeElement as HTMLInputElement).name);
  expect(await isFocused()).toBe("invite");
});

test("who has no link enters the code, or pastes the link", async () => {
  const { path } = await invitation();
  const guest = await world.guest();
  const { page } = guest;
  await page.getByRole("button", { name: "Create an account" }).click();
  await fill(guest, "cora");
  await page.locator("button.main").click();
  await page.getByText("Please enter the code of your invitation.").waitFor();
  await page.getByRole("textbox", { name: "Invitation code" }).fill(world.site.url + path);
  await page.keyboard.press("Enter");
  await guest.online();
});

test("a link that is opened in a tab with the sign-in page switches to sign-up, in Chinese too", async () => {
  const { code } = await invitation();
  const guest = await world.guest({ locale: "zh-CN", viewport: { width: 390, height: 780 } });
  const { page } = guest;
  await page.getByRole("heading", { name: "欢迎回来" }).waitFor();
  await page.evaluate((code) => (location.hash = `#/invite/${code}`), code);
  await page.getByRole("heading", { name: "很高兴认识你" }).waitFor();
  expect(await page.getByRole("textbox", { name: "邀请码" }).inputValue()).toBe(code);
  await page.locator(".turn button").click(); // who has an account signs in
  expect(await page.getByRole("textbox", { name: "邀请码" }).count()).toBe(0);
});

test("where everybody can register, or nobody, no code is asked for", async () => {
  for (const registration of ["open", "closed"]) {
    const other = await World.start({ NEXO_AUTH__REGISTRATION: registration });
    const guest = await other.guest();
    const { page } = guest;
    await page.goto(`${other.site.url}/#/invite/abc`);
    const isOpen = registration === "open";
    await page.getByText(isOpen ? "Already have an account?" : "This server does not accept new accounts.").waitFor();
    await page.getByRole("heading", { name: isOpen ? "Nice to meet you" : "Welcome back" }).waitFor();
    expect(await page.getByRole("textbox", { name: "Invitation code" }).count()).toBe(0);
    await other.stop();
  }
});
