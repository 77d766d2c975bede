import { afterAll, beforeAll, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

const NASTY = [
  `<img src=x onerror="window.hacked=1">`,
  `<script>window.hacked=1</script>`,
  `javascript:window.hacked=1`,
  `[click](javascript:window.hacked=1)`,
  `https://example.org/"onmouseover="window.hacked=1`,
  `{@html "<b>x</b>"} {{constructor.constructor("window.hacked=1")()}}`,
  `\u202Egnp.exe \u2066\u2067 \u200f`,
  `${"a\u0301\u0302\u0303\u0304\u0305\u0306".repeat(30)}`,
  `<style>body{display:none}</style><iframe src="https://example.org"></iframe>`,
];

/** A hostile name: markup, quotes, right-to-left letters with a direction mark, and long. */
const NAME = `<script>window.hacked=3</script>"'\`><b>{@html 1} \u05E9\u05DC\u05D5\u05DD\u200F \u0645\u0631\u062D\u0628\u0627 `.padEnd(128, "W");

let world: World;
let anna: Person;

beforeAll(async () => {
  world = await World.start();
  anna = await world.person("anna", { nickname: `<img src=x onerror="window.hacked=2">` });
});

afterAll(() => world?.stop());

test("texts and names are never markup, and reach nobody else", async () => {
  const { server } = world;
  for (const turn of ["\u202A", "\u202B", "\u202D", "\u202E", "\u2066", "\u2067", "\u2068", "\u0007", "\u2028"]) {
    await expect(server.register("mal", `mal${turn}<script>window.hacked=3</script>`)).rejects.toThrow("bad_nickname");
  }
  await server.register("mal", NAME, "https://example.org/a.png");
  const mal = await server.token("mal");
  for (const text of NASTY) await server.say(mal, { recv_id: "anna" }, text);
  const group = await server.ask<{ group_id: string }>(
    "POST",
    "/group/create",
    { name: `<b onclick="window.hacked=4">group</b>`, member_ids: ["anna"], announcement: NASTY[0] },
    mal,
  );
  for (const text of NASTY) await server.say(mal, { group_id: group.group_id }, text);

  await anna.line("hacked=3").click();
  await anna.bubble("onerror").waitFor();
  expect(await anna.page.locator("article").count()).toBe(NASTY.length);
  expect(await anna.page.locator("article img, article script, article style, article iframe, article b").count()).toBe(0);
  for (const link of await anna.page.locator("article a").all()) {
    expect(await link.getAttribute("href")).toMatch(/^https:\/\/example\.org(\/|$)/);
    expect(await link.getAttribute("rel")).toContain("noopener");
  }
  expect(await anna.page.locator(".head h1").textContent()).toBe(NAME);
  // Right-to-left letters in a name do not reorder the text beside it.
  const direction = await anna.page.locator(".head bdi").first().evaluate((node) => getComputedStyle(node).unicodeBidi);
  expect(direction).toMatch(/isolate/);

  await anna.line("group</b>").click();
  await anna.bubble("onerror").waitFor();
  expect(await anna.page.locator("article .name").first().textContent()).toBe(NAME);
  await anna.page.getByRole("link", { name: "Group details" }).first().click();
  await anna.page.getByText("Announcement").waitFor();
  await anna.page.getByRole("link", { name: "Settings" }).first().click();
  await anna.page.getByRole("textbox", { name: "Display name" }).waitFor();
  expect(await anna.page.evaluate(() => "hacked" in window)).toBe(false);
});

test("what one says oneself is text too", async () => {
  await anna.chatWith("mal");
  for (const text of NASTY) {
    await anna.field.fill(text);
    await anna.field.press("Enter");
  }
  await anna.reaches("iframe", "saved");
  expect(await anna.page.evaluate(() => "hacked" in window)).toBe(false);
});

test("addresses that make no sense lead to the list", async () => {
  for (const hash of ["#/c/%E0%A4%A", "#/c/sg_nothing", "#/c/<script>", "#/c/si_a_b/info", "#/nowhere"]) {
    anna.allow(/status of 40[034]/);
    await anna.page.goto(`${world.site.url}/${hash}`);
    await anna.page.reload();
    await anna.online();
  }
});

test("a link to a conversation of others opens none", async () => {
  await anna.page.goto(`${world.site.url}/#/c/si_ben_cora`);
  await anna.page.reload();
  await anna.online();
  await anna.page.getByText("Choose a conversation").waitFor();
  expect(await anna.field.count()).toBe(0);
});
