import { afterAll, beforeAll, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

let world: World;
let anna: Person;
let groupId: string;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  world = await World.start();
  const { server } = world;
  for (const id of ["ben", "cora"]) {
    await server.register(id, id === "ben" ? "Ben" : "Cora");
    tokens[id] = await server.token(id);
  }
  anna = await world.person("anna", { nickname: "Anna", viewport: { width: 1400, height: 900 } });
  for (const id of ["ben", "cora"]) await server.say(tokens[id]!, { recv_id: "anna" }, `Hello from ${id}`);
  const made = { name: "Team", member_ids: ["anna", "cora"], join_type: "open" };
  groupId = (await server.ask<{ group_id: string }>("POST", "/group/create", made, tokens["ben"])).group_id;
  for (const name of ["Ben", "Cora", "Team"]) await anna.line(name).waitFor();
});

afterAll(() => world?.stop());

/** Scrolls up until this is visible. */
async function readBackTo(text: string): Promise<void> {
  await anna.page.getByRole("log").hover();
  await expect.poll(async () => {
    await anna.page.mouse.wheel(0, -1_500);
    return anna.bubble(text).isVisible();
  }, { timeout: 10_000 }).toBe(true);
}

test("a conversation is hidden until something is said, and that can be undone", async () => {
  await anna.line("Ben").click({ button: "right" });
  await anna.page.getByRole("menuitem", { name: "Hide conversation" }).click();
  await anna.line("Ben").waitFor({ state: "detached" });
  await anna.page.getByRole("button", { name: "Undo" }).click();
  await anna.line("Ben").waitFor();

  await anna.line("Ben").focus();
  await anna.page.keyboard.press("Delete");
  await anna.line("Ben").waitFor({ state: "detached" });
  await anna.page.reload();
  await anna.line("Cora").waitFor();
  expect(await anna.line("Ben").count()).toBe(0);
  await world.server.say(tokens["ben"]!, { recv_id: "anna" }, "Still there?");
  await anna.line("Ben").getByText("Still there?").waitFor();
});

test("hiding what is open leads to the list", async () => {
  await anna.line("Cora").click();
  await anna.field.waitFor();
  await anna.page.getByRole("button", { name: "More" }).click();
  await anna.page.getByRole("menuitem", { name: "Hide conversation" }).click();
  await anna.page.getByText("Choose a conversation").waitFor();
});

test("a group one was removed from can be hidden, and an ended one goes by itself", async () => {
  const { page } = anna;
  anna.allow(/status of 40[34]/, /status of 410/);
  await anna.line("Team").click();
  await anna.field.waitFor();
  await world.server.ask("POST", "/group/kick", { group_id: groupId, user_id: "anna" }, tokens["ben"]);
  await page.getByText("You are no longer a member of this group.").first().waitFor();
  await anna.line("Team").waitFor();
  await anna.line("Team").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Hide conversation" }).click();
  await anna.line("Team").waitFor({ state: "detached" });

  const made = { name: "Short", member_ids: ["anna", "cora"] };
  const { group_id } = await world.server.ask<{ group_id: string }>("POST", "/group/create", made, tokens["ben"]);
  await anna.line("Short").waitFor();
  await world.server.ask("POST", "/group/dissolve", { group_id }, tokens["ben"]);
  await anna.line("Short").waitFor({ state: "detached" });
  await page.reload();
  await anna.line("Ben").waitFor();
  expect(await anna.line("Short").count()).toBe(0);
  expect(await anna.line("Team").count()).toBe(0);
});

for (const end of ["dissolve", "dismiss"]) {
  test(`whoever looks at a group keeps reading when its owner ends it: ${end}`, async () => {
    const { page } = anna;
    const { server } = world;
    anna.allow(/status of 40[34]/, /status of 410/);
    const made = { name: `Choir ${end}`, member_ids: ["anna", "cora"] };
    const { group_id } = await server.ask<{ group_id: string }>("POST", "/group/create", made, tokens["ben"]);
    for (let n = 1; n <= 70; n += 1) await server.say(tokens["ben"]!, { group_id }, `song ${n}.`);
    const read = { conversation_id: `sg_${group_id}`, read_seq: 70 };
    await server.ask("POST", "/conversation/mark_read", read, await server.token("anna"));
    await anna.line(made.name).getByText("unread").waitFor({ state: "detached" });
    await anna.line(made.name).click();
    await anna.bubble("song 70.").waitFor();
    await anna.field.waitFor();
    await server.ask("POST", `/group/${end}`, { group_id }, tokens["ben"]);
    const chat = page.locator("section.chat");
    await chat.getByText("This group was dissolved.").waitFor();
    await chat.getByText("The group was dissolved").waitFor();
    await anna.line(made.name).waitFor({ state: "detached" });
    await page.waitForTimeout(700); // nor does what comes later take it away
    expect(await page.getByText("There is no such group").count()).toBe(0);
    expect(await anna.bubble("song 70.").isVisible()).toBe(true);
    expect(await anna.field.count()).toBe(0);
    expect(await page.locator(".head h1").textContent()).toBe(made.name);

    // By the link, too, back to the beginning.
    await page.reload();
    await chat.getByText("This group was dissolved.").waitFor();
    await chat.getByText("The group was dissolved").waitFor();
    await anna.bubble("song 70.").waitFor();
    await readBackTo("song 1.");
    expect(await anna.field.count()).toBe(0);
    expect(await anna.line(made.name).count()).toBe(0);
    // The server has deleted the name of a dismissed group.
    await page.locator(".head h1", { hasText: end === "dissolve" ? made.name : group_id }).waitFor();
    await page.getByRole("link", { name: "Group details" }).click();
    const panel = page.getByRole("complementary", { name: "Group details" });
    await panel.getByText("This group was dissolved.").waitFor();
    expect(await panel.getByRole("button").count()).toBe(0);
  });
}

test("a group one left is read by its link after it was hidden, here or elsewhere", async () => {
  const { page } = anna;
  const { server } = world;
  anna.allow(/status of 40[34]/);
  const made = { name: "Attic", member_ids: ["anna", "cora"] };
  const { group_id } = await server.ask<{ group_id: string }>("POST", "/group/create", made, tokens["ben"]);
  await server.say(tokens["ben"]!, { group_id }, "mind the stairs");
  await anna.line("Attic").click();
  await anna.bubble("mind the stairs").waitFor();
  const elsewhere = await server.token("anna");
  await server.ask("POST", "/group/leave", { group_id }, elsewhere);
  const chat = page.locator("section.chat");
  await chat.getByText("You are no longer a member of this group.").waitFor();
  await server.ask("POST", "/conversation/hide", { conversation_id: `sg_${group_id}`, hidden: true }, elsewhere);
  await anna.line("Attic").waitFor({ state: "detached" });
  await page.waitForTimeout(700);
  expect(await anna.bubble("mind the stairs").isVisible()).toBe(true);
  await page.reload();
  await chat.getByText("You are no longer a member of this group.").waitFor();
  await anna.bubble("mind the stairs").waitFor();
  await page.locator(".head h1", { hasText: "Attic" }).waitFor();
  expect(await anna.field.count()).toBe(0);
  expect(await anna.line("Attic").count()).toBe(0);
});

test("a group one was never in is still none", async () => {
  anna.allow(/status of 40[34]/);
  const made = { name: "Theirs", member_ids: ["cora"] };
  const { group_id } = await world.server.ask<{ group_id: string }>("POST", "/group/create", made, tokens["ben"]);
  await anna.page.goto(`${world.site.url}/#/c/sg_${group_id}`);
  await anna.page.getByText("There is no such group, or you are not in it.").waitFor();
  await world.server.ask("POST", "/group/dissolve", { group_id }, tokens["ben"]);
  await anna.page.reload();
  await anna.page.getByText("There is no such group, or you are not in it.").waitFor();
});
