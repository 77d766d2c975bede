import type { Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

let world: World;
let anna: Person;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  world = await World.start();
  const { server } = world;
  for (const [id, name] of [["ben", "Ben Okri"], ["cora", "Cora"], ["dan", "Dan Brown"]] as const) {
    await server.register(id, name);
    tokens[id] = await server.token(id);
  }
  anna = await world.person("anna", { nickname: "Anna", viewport: { width: 1400, height: 900 } });
  tokens["anna"] = await server.token("anna");
  await anna.page.getByRole("link", { name: "Settings" }).first().click();
});

afterAll(() => world?.stop());

const consent = () =>
  world.server.ask<Record<string, string>>("GET", "/user/consent", undefined, tokens["anna"]);

const section = () => anna.page.getByRole("region", { name: "Privacy" });

/** The choice with this label, in view: a list that is opened closes when the page scrolls. */
async function choiceOf(label: string): Promise<Locator> {
  const box = section().getByRole("combobox", { name: label });
  await box.scrollIntoViewIfNeeded();
  await anna.page.evaluate(() => new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown))));
  return box;
}

async function choose(label: string, option: string): Promise<void> {
  await (await choiceOf(label)).click();
  await section().getByRole("option", { name: option }).click();
}

test("who can write is chosen, and holds", async () => {
  const { page } = anna;
  const { server } = world;
  const write = page.getByRole("combobox", { name: "Who can write to me" });
  expect(await write.textContent()).toContain("Everyone");
  await choose("Who can write to me", "People I share a group or chat with");
  await expect.poll(async () => (await consent())["write"]).toBe("shared_group");
  await page.getByText("Saved").waitFor();
  await expect(server.say(tokens["ben"]!, { recv_id: "anna" }, "Hello?")).rejects.toThrow("not_accepting");
  await page.reload();
  await expect.poll(() => write.textContent()).toContain("People I share a group or chat with");
  await server.ask("POST", "/group/create", { name: "Team", member_ids: ["anna"] }, tokens["ben"]);
  await server.say(tokens["ben"]!, { recv_id: "anna" }, "Now we share a group");
  await anna.line("Ben Okri").waitFor();
});

test("a refused message says why", async () => {
  const { page } = anna;
  await page.evaluate(() => (location.hash = "#/"));
  await world.server.ask("PUT", "/user/consent", { write: "nobody" }, tokens["dan"]);
  await anna.chatWith("dan");
  await anna.say("Hello Dan");
  await anna.reaches("Hello Dan", "refused");
  await page.getByText("The privacy settings of this person do not allow this.").waitFor();
  await page.getByRole("link", { name: "Settings" }).first().click();
});

test("who sees when one is online is chosen by keyboard", async () => {
  const { page } = anna;
  const seen = await choiceOf("Who can see when I was last online");
  expect(await seen.textContent()).toContain("People I share a group or chat with");
  await seen.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await consent())["last_seen"]).toBe("nobody");
  await choose("Who can see when I am online", "Nobody");
  await expect.poll(async () => (await consent())["online"]).toBe("nobody");
  await choose("Who can add me to groups", "Nobody");
  await expect.poll(async () => (await consent())["invite"]).toBe("nobody");
});

test("a choice that cannot be stored is taken back", async () => {
  const { page } = anna;
  anna.allow(/Failed to load resource/);
  await page.route("**/user/consent", (route) => route.abort());
  await choose("Who can see when I am online", "People I share a group or chat with");
  await page.getByText("The server does not answer.").waitFor();
  const online = page.getByRole("combobox", { name: "Who can see when I am online" });
  await expect.poll(() => online.textContent()).toContain("Nobody");
  await page.unroute("**/user/consent");
});

test("blocked people are listed and unblocked", async () => {
  const { page } = anna;
  const { server } = world;
  const section = page.getByRole("region", { name: "Blocked people" });
  await section.getByText("You have not blocked anyone.").waitFor();
  for (const user_id of ["cora", "dan"]) await server.ask("POST", "/user/block", { user_id }, tokens["anna"]);
  await page.reload();
  await section.getByText("Dan Brown").waitFor();
  expect(await section.getByRole("listitem").count()).toBe(2);
  await section.getByRole("button", { name: "Unblock Cora" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("You unblocked Cora.").waitFor();
  await expect.poll(() => section.getByRole("listitem").count()).toBe(1);
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("blocked");
  const blocks = await server.ask<{ user_ids: string[] }>("GET", "/user/blocks", undefined, tokens["anna"]);
  expect(blocks.user_ids).toEqual(["dan"]);
});

test("a block in a chat and one in the list are the same", async () => {
  const { page } = anna;
  await anna.line("Ben Okri").click();
  await page.locator(".head a.who").click();
  const profile = page.getByRole("complementary", { name: "Profile" });
  await profile.getByRole("button", { name: "Block" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Block" }).click();
  await profile.getByText("You blocked this person.").waitFor();
  await page.getByRole("link", { name: "Settings" }).first().click();
  const section = page.getByRole("region", { name: "Blocked people" });
  await section.getByRole("button", { name: "Unblock Ben Okri" }).click();
  await anna.line("Ben Okri").getByText("Blocked").waitFor({ state: "detached" });
  await anna.line("Ben Okri").click();
  await anna.field.waitFor();
});
