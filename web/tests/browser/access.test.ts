import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, type Person, World } from "./world.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let world: World;
let groupId: string;

beforeAll(async () => {
  world = await World.start();
  const { server } = world;
  for (const [id, name] of [["mara", "Mara"], ["jonas", "Jonas"], ["lin", "林晓"], ["kenji", "Kenji"]] as const) {
    await server.register(id, name, id === "lin" ? "🍵" : "");
  }
  const [mara, jonas, kenji] = [await server.token("mara"), await server.token("jonas"), await server.token("kenji")];
  const made = { name: "Garden", member_ids: ["jonas", "lin"], join_type: "approval", announcement: "Water the beans." };
  groupId = (await server.ask<{ group_id: string }>("POST", "/group/create", made, mara)).group_id;
  await server.say(mara, { group_id: groupId }, "Good morning");
  await server.say(jonas, { group_id: groupId }, "Morning! See https://example.org");
  await server.say(jonas, { recv_id: "mara" }, "Psst");
  await server.ask("POST", "/group/join", { group_id: groupId, message: "Please" }, kenji);
});

afterAll(() => world?.stop());

/**
 * Fails on violations axe finds. The page's policy forbids loading axe, so it is injected through the
 * debugger.
 */
async function check({ page }: Person, where: string): Promise<void> {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: typeof import("axe-core") }).axe.run(document, {
      resultTypes: ["violations"],
    });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
  expect(found, where).toEqual([]);
}

for (const [locale, colorScheme] of [["en-GB", "light"], ["en-GB", "dark"], ["zh-CN", "light"], ["zh-CN", "dark"]] as const) {
  test(`everybody can use it: ${locale}, ${colorScheme}`, async () => {
    const person = await world.guest({ locale, colorScheme, viewport: { width: 1400, height: 900 }, reducedMotion: "reduce" });
    const { page } = person;
    await page.getByRole("heading", { level: 1 }).waitFor();
    await check(person, "entry");
    await page.locator(".under .link").first().click();
    await page.locator("button.main").click();
    await check(person, "reset, with errors");
    await page.locator(".card > .link").click();
    await page.locator(".turn button").click();
    await page.locator("button.main").click();
    await check(person, "register, with errors");
    await page.locator(".turn button").click();
    await person.signIn("mara");
    await person.line("Garden").waitFor();
    await check(person, "list");
    await person.line("Garden").click();
    await page.locator("article").first().waitFor();
    await check(person, "chat");
    await page.locator(".head a.round").last().click();
    await page.locator("#members").waitFor();
    await page.locator("#waiting").waitFor();
    await check(person, "group details");
    await page.locator("#members ~ ul a.who").last().click();
    await page.locator("aside h3.name").waitFor(); // the panel before it may still be there
    await page.locator("#members").waitFor({ state: "detached" });
    await check(person, "profile");
    await page.goBack();
    await page.locator("aside .body > .button").first().click();
    await page.getByRole("dialog").getByRole("combobox").waitFor();
    await check(person, "invite");
    await page.keyboard.press("Escape");
    await page.locator(".add").click();
    await check(person, "menu");
    await page.getByRole("menuitem").nth(1).click();
    await check(person, "dialog");
    await page.keyboard.press("Escape");
    await page.locator("a.me").click();
    await page.locator("#settings").waitFor();
    await check(person, "settings");
    expect(await page.evaluate(() => document.documentElement.lang)).toBe(locale === "zh-CN" ? "zh-CN" : "en");
    await person.context.close();
  });
}

test("it all goes by keyboard", async () => {
  const person = await world.guest();
  await person.signIn("mara");
  const { page } = person;
  await person.line("Garden").waitFor();
  await person.line("Jonas").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const second = await page.evaluate(() => document.activeElement?.textContent);
  await page.keyboard.press("Enter");
  await person.field.waitFor();
  expect(second).toContain(await page.locator(".head h1").textContent());
  await person.line("Garden").click();
  await page.locator("article").first().waitFor();
  await person.field.press("Shift+Tab"); // to the messages
  await page.getByRole("log").press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.getByRole("menu", { name: "Message actions" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByText(/Replying to/).waitFor();
  await page.keyboard.press("Escape");
  await page.getByText(/Replying to/).waitFor({ state: "detached" });

  const add = page.getByRole("button", { name: "New conversation" });
  await add.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await add.evaluate((node) => node === document.activeElement)).toBe(true);
});

test("Enter that ends a word of an input method sends and opens nothing", async () => {
  const person = await world.guest();
  await person.signIn("mara");
  const { page } = person;
  await person.line("Garden").click();
  await person.bubble("Morning!").waitFor();
  const before = await page.locator("article").count();
  const enter = (selector: string) =>
    page.locator(selector).evaluate((node) => {
      const init = { key: "Enter", keyCode: 229, bubbles: true, cancelable: true };
      return node.dispatchEvent(new KeyboardEvent("keydown", init));
    });
  await person.field.fill("你好");
  expect(await enter("textarea")).toBe(true); // left to the browser
  expect(await person.field.inputValue()).toBe("你好");
  await page.locator("#search").fill("Jonas");
  await enter("#search");
  expect(await page.locator("#search").inputValue()).toBe("Jonas");
  expect(await page.locator(".head h1").textContent()).toBe("Garden");
  expect(await page.locator("article").count()).toBe(before);
  await person.field.fill("");
});

test("a phone shows one thing at a time, and back goes back", async () => {
  const person = await world.guest({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
  await person.signIn("mara");
  const { page } = person;
  await person.line("Garden").tap();
  await page.locator("article").first().waitFor();
  expect(await page.locator("#search").isVisible()).toBe(false);
  await page.locator(".head a.who").tap();
  await page.locator("#members").waitFor();
  expect(await person.field.isVisible()).toBe(false);
  await page.goBack();
  await person.field.waitFor();
  await page.locator("article .bubble").first().tap();
  await page.getByRole("menu").waitFor();
  await page.touchscreen.tap(5, 400);
  await page.getByRole("menu").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Back" }).tap();
  await person.line("Garden").waitFor();
  // With a smaller font the browser would zoom in.
  for (const field of await page.locator("input, textarea").all()) {
    expect(await field.evaluate((node) => getComputedStyle(node).fontSize)).toBe("16px");
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide).toBe(390);
});

test("choices of colours and language last, and notifications are only asked for", async () => {
  const person = await world.guest();
  await person.signIn("mara");
  const { page } = person;
  await page.locator("a.me").click();
  await page.getByText("Dark", { exact: true }).click();
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(ground).toBe("rgb(17, 19, 26)");
  await page.getByText("中文", { exact: true }).click();
  await page.getByRole("heading", { name: "设置" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "设置" }).waitFor();
  expect(await page.evaluate(() => Notification.permission)).not.toBe("granted");
});

test("a hidden page tells of what arrives", async () => {
  const person = await world.guest();
  const { page } = person;
  await person.context.grantPermissions(["notifications"]);
  await page.addInitScript(() => {
    const shown: string[] = [];
    class Fake {
      static permission = "granted";
      static requestPermission = async () => "granted";
      onclick = null;
      constructor(title: string, options: { body: string }) {
        shown.push(`${title}: ${options.body}`);
      }
      close(): void {}
    }
    Object.assign(globalThis, { Notification: Fake, shown });
  });
  await page.reload();
  await person.signIn("mara");
  await page.locator("a.me").click();
  await page.getByRole("switch", { name: "Notify me while this page is hidden" }).check();
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await world.server.say(await world.server.token("jonas"), { recv_id: "mara" }, "Are you there?");
  await page.waitForFunction(() => (globalThis as unknown as { shown: string[] }).shown.length > 0);
  expect(await page.evaluate(() => (globalThis as unknown as { shown: string[] }).shown)).toEqual(["Jonas: Are you there?"]);
});

test("the page that says why it ended", async () => {
  const person = await world.guest();
  person.allowBadDays();
  await person.signIn("mara");
  const body = { old_password: PASSWORD, new_password: "something else" };
  await world.server.ask("POST", "/user/change_password", body, await world.server.token("mara"));
  await person.page.getByRole("heading", { name: "Your sign-in has ended" }).waitFor();
  await check(person, "ended");
  await person.page.getByRole("button", { name: "Use another account" }).click();
  await person.page.getByRole("heading", { name: "Welcome back" }).waitFor();
});
