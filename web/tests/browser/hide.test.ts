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
  await anna.page.getByText("Pick a conversation").waitFor();
});

test("a group one was removed from can be hidden, and an ended one goes by itself", async () => {
  const { page } = anna;
  anna.allow(/status of 40[34]/, /status of 410/);
  await anna.line("Team").click();
  await anna.field.waitFor();
  await world.server.ask("POST", "/group/kick", { group_id: groupId, user_id: "anna" }, tokens["ben"]);
  await page.getByText("You are not in this group any more.").first().waitFor();
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
