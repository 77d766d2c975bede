import type { Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

/** More members than come with the first page. */
const MANY = 120;
let world: World;
let groupId: string;
let owner: Person;

const idOf = (index: number) => `member${String(index).padStart(3, "0")}`;

beforeAll(async () => {
  world = await World.start();
  const { server } = world;
  await server.register("owner", "Owner");
  const ids = Array.from({ length: MANY }, (_, index) => idOf(index));
  for (const id of ids) await server.register(id, id.replace("member", "Person "));
  const token = await server.token("owner");
  const made = { name: "Crowd", member_ids: ids, join_type: "approval" };
  groupId = (await server.ask<{ group_id: string }>("POST", "/group/create", made, token)).group_id;
  const [last, left] = [await server.token(idOf(MANY - 1)), await server.token(idOf(3))];
  await server.say(last, { group_id: groupId }, "from the last of many");
  await server.say(left, { group_id: groupId }, "and good bye");
  await server.ask("POST", "/group/leave", { group_id: groupId }, left);
  owner = await world.guest({ viewport: { width: 1400, height: 900 } });
  await owner.signIn("owner");
  await owner.line("Crowd").waitFor();
});

afterAll(() => world?.stop());

test("somebody asks to join a group that nobody has opened yet, and it is noticed", async () => {
  await world.server.register("zoe", "Zoe");
  const zoe = await world.server.token("zoe");
  await world.server.ask("POST", "/group/join", { group_id: groupId, message: "Please" }, zoe);
  await owner.page.getByText("Zoe asks to join Crowd.").waitFor();
  await owner.line("Crowd").getByText("1 person is waiting to join").waitFor({ state: "attached" });
  await owner.line("Crowd").click();
  await owner.page.getByRole("link", { name: "Group details" }).first().click();
  await owner.page.getByRole("button", { name: "Decline" }).click();
  await owner.line("Crowd").getByText("is waiting to join").waitFor({ state: "detached" });
  await owner.page.getByRole("link", { name: "Close" }).click();
});

test("a mention finds those whom no page has shown yet", async () => {
  await owner.field.pressSequentially(`@${idOf(MANY - 1)}`);
  await owner.page.getByRole("option", { name: `Person ${MANY - 1}` }).waitFor();
  await owner.field.fill("");
});

test("what somebody said whom no page has shown, or who has left, is taken back", async () => {
  await owner.page.reload();
  owner.allow(/status of 404/); // who has left is no member
  await owner.choose("from the last of many", "Unsend");
  await owner.choose("and good bye", "Unsend");
  await owner.page.locator("article").filter({ hasText: "An admin removed this message" }).nth(1).waitFor();
  expect(await owner.bubble("and good bye").count()).toBe(0);
});

test("what changes while a group is loaded is loaded, too", async () => {
  const { page } = owner;
  await world.server.register("yves", "Yves");
  let isHeld = false;
  let letGo = () => {};
  const slow = async (route: Route) => {
    const response = await route.fetch(); // as it was
    isHeld = true;
    await new Promise<void>((go) => (letGo = go));
    await route.fulfill({ response });
  };
  await page.route("**/group/members*", slow, { times: 1 });
  await page.getByRole("link", { name: "Group details" }).first().click();
  await expect.poll(() => isHeld).toBe(true);
  const token = await world.server.token("owner");
  await world.server.ask("POST", "/group/invite", { group_id: groupId, user_ids: ["yves"] }, token);
  await page.getByText("Yves joined").waitFor();
  await page.waitForTimeout(500);
  letGo();
  // The owner, and all but one who left.
  await page.locator("#members").getByText(String(MANY + 1), { exact: true }).waitFor();
});
