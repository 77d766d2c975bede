import type { Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

const LONG = "Bartholomew".repeat(5);
const PHONE = { viewport: { width: 390, height: 660 }, hasTouch: true, isMobile: true };

let world: World;
let groupId: string;

beforeAll(async () => {
  world = await World.start();
  const { server } = world;
  await server.register("mara", "Mara");
  await server.register("long", LONG);
  const [mara, long] = [await server.token("mara"), await server.token("long")];
  const made = { name: `Group ${LONG}`.slice(0, 64), member_ids: ["long"], join_type: "approval" };
  groupId = (await server.ask<{ group_id: string }>("POST", "/group/create", made, mara)).group_id;
  await server.say(long, { group_id: groupId }, "Good morning");
  await server.say(long, { recv_id: "mara" }, "Psst");
});

afterAll(() => world?.stop());

async function boxOf(locator: Locator): Promise<{ x: number; y: number; width: number; height: number }> {
  return (await locator.boundingBox())!;
}

/** Whether the whole page can be scrolled by any means. */
function pageScrolls({ page }: Person): Promise<boolean> {
  return page.evaluate(() => {
    scrollTo(0, 5_000);
    document.querySelector(".workspace")!.scrollTop = 5_000;
    const isMoved = scrollY > 0 || document.querySelector(".workspace")!.scrollTop > 0;
    return isMoved || document.documentElement.scrollHeight > innerHeight;
  });
}

test("signing in begins with the cursor in the first field", async () => {
  const guest = await world.guest();
  await guest.page.locator("input[name=username]").waitFor();
  expect(await guest.page.evaluate(() => document.activeElement?.getAttribute("name"))).toBe("username");
  await guest.context.close();
});

for (const [what, options] of [["a window", { viewport: { width: 1100, height: 620 } }], ["a phone", PHONE]] as const) {
  test(`settings scroll inside themselves: ${what}`, async () => {
    const person = await world.guest(options);
    await person.signIn("mara");
    await person.page.locator("a.me").click();
    await person.page.locator("#settings").waitFor();
    expect(await pageScrolls(person)).toBe(false);
    const out = person.page.getByRole("button", { name: "Sign out", exact: true });
    await out.scrollIntoViewIfNeeded();
    expect(await pageScrolls(person)).toBe(false);
    const { y } = await boxOf(person.page.getByRole("heading", { name: "Settings" }));
    expect(y).toBeGreaterThan(0); // its head stays
    await out.click();
    await person.page.getByRole("dialog").waitFor();
    await person.context.close();
  });
}

test("a code is copied on a page without TLS, or is selected", async () => {
  const person = await world.guest({ viewport: { width: 1400, height: 900 } });
  person.allow(/^asks http:\/\/nexo\.test/);
  const { page } = person;
  await page.goto(world.site.url.replace("127.0.0.1", "nexo.test"));
  await person.signIn("mara");
  expect(await page.evaluate(() => [isSecureContext, "clipboard" in navigator])).toEqual([false, false]);
  await page.goto(`${world.site.url.replace("127.0.0.1", "nexo.test")}/#/c/sg_${groupId}/info`);
  const copy = page.getByRole("button", { name: "Copy code" });
  await copy.click();
  await page.getByText("Copied").waitFor();
  const code = (await page.locator("code").first().textContent())!;
  await person.field.focus();
  await page.keyboard.press("Control+v");
  expect(await person.field.inputValue()).toBe(code);
  await person.field.fill("");

  await page.evaluate(() => (document.execCommand = () => false));
  await copy.click();
  await page.getByText("Selected. Copy it with your keyboard.").waitFor();
  expect(await page.evaluate(() => String(getSelection()))).toBe(code);
  await person.context.close();
});

test("toasts lie over the chat, not over the list or the composer", async () => {
  for (const viewport of [{ width: 1400, height: 900 }, { width: 900, height: 700 }]) {
    const person = await world.guest({ viewport });
    await person.signIn("mara");
    const { page } = person;
    await person.line("Bartholomew").last().click();
    await person.field.waitFor();
    await page.locator("article .bubble").last().click({ button: "right" });
    await page.getByRole("menuitem", { name: "Copy text" }).click();
    const toast = await boxOf(page.getByRole("status").getByText("Copied"));
    const [side, composer] = [await boxOf(page.locator(".side")), await boxOf(person.field)];
    expect(toast.x).toBeGreaterThan(side.x + side.width);
    expect(toast.y + toast.height).toBeLessThan(composer.y);
    expect(toast.y).toBeGreaterThan((await boxOf(page.locator(".head"))).height);
    await person.context.close();
  }
});

test("who may join is chosen in a select of our own, by keyboard and by pointer", async () => {
  const person = await world.guest();
  await person.signIn("mara");
  const { page } = person;
  await page.getByRole("button", { name: "New conversation" }).click();
  await page.getByRole("menuitem", { name: "New group" }).click();
  expect(await page.locator("select").count()).toBe(0);
  const select = page.getByRole("combobox", { name: "Who can join" });
  expect(await select.textContent()).toContain("Anyone, after approval");
  await select.focus();
  await page.keyboard.press("ArrowDown");
  await page.getByRole("listbox", { name: "Who can join" }).waitFor();
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  expect(await select.textContent()).toContain("Only invited people");
  await page.keyboard.press("Space");
  await page.keyboard.press("Home");
  await page.keyboard.press("Escape"); // closes the list, not the dialog, and takes nothing
  await page.getByRole("listbox", { name: "Who can join" }).waitFor({ state: "hidden" });
  expect(await select.textContent()).toContain("Only invited people");
  await select.click();
  await page.getByRole("option", { name: "Anyone with the code" }).click();
  expect(await select.textContent()).toContain("Anyone with the code");
  await page.getByRole("textbox", { name: "Group name" }).fill("Chosen");
  await page.getByRole("button", { name: "Create group" }).click();
  await person.field.waitFor();
  await page.getByRole("link", { name: "Group details" }).click();
  await page.getByRole("complementary").getByText("Anyone with the code").waitFor();
  const only = page.getByRole("switch", { name: "Only admins can post" });
  await only.focus();
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>("[role=switch]")?.checked === true);
  await person.context.close();
});

test("while the list loads there are skeletons, and no word that it is empty", async () => {
  const person = await world.guest();
  let answer = () => {};
  const held = new Promise<void>((done) => (answer = done));
  await person.page.route("**/conversation/heads*", async (route) => {
    await held;
    await route.continue();
  });
  await person.signIn("mara");
  await person.page.locator(".ghost").first().waitFor();
  expect(await person.page.getByText("No conversations yet").count()).toBe(0);
  answer();
  await person.line("Bartholomew").first().waitFor();
  expect(await person.page.locator(".ghost").count()).toBe(0);
  await person.context.close();
});

test("long names end with dots and tell themselves whole", async () => {
  for (const options of [{ viewport: { width: 1400, height: 900 } }, PHONE]) {
    const person = await world.guest(options);
    await person.signIn("mara");
    const { page } = person;
    const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
    const name = page.locator("nav .name", { hasText: LONG }).first();
    await name.waitFor();
    expect(await name.getAttribute("title")).toContain(LONG.slice(0, 40));
    expect(await name.evaluate((node) => getComputedStyle(node).textOverflow)).toBe("ellipsis");
    await page.goto(`${world.site.url}/#/c/sg_${groupId}/info`);
    await page.locator("#members").waitFor();
    expect(await fits()).toBe(true);
    await page.locator("aside").getByRole("link", { name: LONG }).click();
    await page.getByRole("complementary", { name: "Profile" }).waitFor();
    expect(await fits()).toBe(true);
    const panel = await boxOf(page.locator("aside"));
    const heading = await boxOf(page.locator("aside h3"));
    expect(heading.x + heading.width).toBeLessThanOrEqual(panel.x + panel.width);
    await page.getByRole("button", { name: "Block" }).click();
    expect(await page.getByRole("dialog").evaluate((node) => node.scrollWidth <= node.clientWidth)).toBe(true);
    await person.context.close();
  }
});
