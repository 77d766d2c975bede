import { afterAll, beforeAll, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

let world: World;
let anna: Person;

beforeAll(async () => {
  world = await World.start({ NEXO_MESSAGES__RECALL_SECONDS: "9" });
  anna = await world.person("anna", { nickname: "Anna" });
});

afterAll(() => world?.stop());

async function choices(text: string): Promise<string[]> {
  await anna.bubble(text).locator(".bubble").click({ button: "right" });
  const found = (await anna.page.getByRole("menuitem").allTextContents()).map((one) => one.trim());
  await anna.page.keyboard.press("Escape");
  return found;
}

test("unsend is offered only while the server takes it back, or by whoever stands above", async () => {
  const { server } = world;
  await server.register("ben", "Ben");
  await server.register("cora", "Cora");
  const [ben, annas] = [await server.token("ben"), await server.token("anna")];
  const made = { name: "Garden", member_ids: ["ben", "cora"] };
  const { group_id } = await server.ask<{ group_id: string }>("POST", "/group/create", made, annas);
  await server.say(ben, { group_id }, "from a member");
  await anna.line("Garden").click();
  await anna.say("from the owner");
  await anna.reaches("from the owner", "saved");
  expect(await choices("from the owner")).toContain("Unsend");
  await anna.page.waitForTimeout(9_000);
  expect(await choices("from the owner")).not.toContain("Unsend"); // own messages have a recall window, also an owner's
  expect(await choices("from a member")).toContain("Unsend"); // those of lower roles have none
  await anna.choose("from a member", "Unsend");
  await anna.page.getByText("Message unsent").waitFor();
  await anna.page.getByRole("button", { name: "Undo" }).waitFor({ state: "detached", timeout: 8_000 });
  const changes = await server.ask<Array<{ kind: string }>>("GET", `/conversation/changes?conversation_id=sg_${group_id}`, undefined, annas);
  expect(changes.map(({ kind }) => kind)).toContain("recalled");
});

test("what is unsent at the last moment is gone in time", async () => {
  await anna.chatWith("ben");
  await anna.say("just in time");
  await anna.reaches("just in time", "saved");
  await anna.page.waitForTimeout(4_500);
  await anna.choose("just in time", "Unsend");
  await anna.page.getByRole("button", { name: "Undo" }).waitFor({ state: "detached", timeout: 8_000 });
  await anna.page.locator("article.mine").filter({ hasText: "You unsent this message" }).waitFor();
  expect(await anna.page.getByText("It is too late").count()).toBe(0);
});

test("unsend leaves an open menu when the time is over", async () => {
  await anna.say("open for long");
  await anna.reaches("open for long", "saved");
  await anna.bubble("open for long").locator(".bubble").click({ button: "right" });
  const unsend = anna.page.getByRole("menuitem", { name: "Unsend" });
  await unsend.focus();
  await unsend.waitFor({ state: "detached", timeout: 9_000 });
  const first = anna.page.getByRole("menuitem").first();
  expect(await first.evaluate((node) => node === document.activeElement)).toBe(true);
  await anna.page.keyboard.press("Escape");
});

test("what is being unsent is unsent in the list, too, until one thinks again", async () => {
  const line = anna.line("Ben");
  await anna.say("on second thought");
  await anna.reaches("on second thought", "saved");
  await line.getByText("on second thought").waitFor();
  await anna.choose("on second thought", "Unsend");
  await line.getByText("Message unsent").waitFor();
  const undo = anna.page.getByRole("button", { name: "Undo" });
  expect(await undo.isVisible()).toBe(true);
  expect(await line.getByText("on second thought").count()).toBe(0);
  await undo.click();
  await line.getByText("on second thought").waitFor();
});
