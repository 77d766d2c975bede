import { afterAll, beforeAll, expect, test } from "vitest";
import { World } from "./world.ts";

let world: World;

beforeAll(async () => {
  world = await World.start();
});

afterAll(() => world?.stop());

test("a new name and picture reach others at once, in list, chat, group and profile", async () => {
  const viewport = { width: 1400, height: 900 };
  const [anna, ben] = [await world.person("anna", { nickname: "Anna", viewport }), await world.person("ben", { nickname: "Ben", viewport })];
  const { server } = world;
  const token = await server.token("ben");
  const made = { name: "Team", member_ids: ["anna"], join_type: "open" };
  const { group_id } = await server.ask<{ group_id: string }>("POST", "/group/create", made, token);
  await server.say(token, { recv_id: "anna" }, "Hello");
  await server.say(token, { group_id }, "Hello all");
  await anna.line("Ben").waitFor();
  await anna.line("Team").click();
  await anna.bubble("Hello all").getByText("Ben", { exact: true }).waitFor();
  await anna.page.getByRole("link", { name: "Group details" }).click();
  const panel = anna.page.getByRole("complementary", { name: "Group details" });
  await panel.getByRole("link", { name: "Ben" }).waitFor();

  await ben.page.locator("a.me").click();
  await ben.page.getByRole("textbox", { name: "Display name" }).fill("Benedict");
  await ben.page.getByRole("textbox", { name: "Picture" }).fill("🦊");
  await ben.page.getByRole("button", { name: "Save" }).click();

  await anna.line("Benedict").getByText("🦊").waitFor();
  await anna.line("Team").getByText("Benedict: Hello all").waitFor();
  await anna.bubble("Hello all").getByText("Benedict").waitFor();
  await panel.getByRole("link", { name: "Benedict" }).waitFor();
});

test("in the list a long name leaves room for the words", async () => {
  const { server } = world;
  const dora = await world.person("dora", { nickname: "Dora" });
  await server.register("max", "Maximiliane Wolkenstein-Trostburg von und zu Rodenegg");
  const token = await server.token("max");
  const { group_id } = await server.ask<{ group_id: string }>("POST", "/group/create", { name: "Castle", member_ids: ["dora"] }, token);
  await server.say(token, { group_id }, "the bridge is up");
  const line = dora.line("Castle");
  await line.getByText("Rodenegg: the bridge is up").waitFor();
  const words = line.getByText("the bridge is up", { exact: true });
  const [inner, outer] = await Promise.all([words.boundingBox(), line.locator(".text").boundingBox()]);
  expect(inner!.x + Math.min(inner!.width, 80)).toBeLessThanOrEqual(outer!.x + outer!.width);
});

test("who has another name in a group is called so there, and only there", async () => {
  const { server } = world;
  const viewport = { width: 1400, height: 900 };
  const eva = await world.person("eva", { nickname: "Eva", viewport });
  await server.register("finn", "Finn");
  const token = await server.token("finn");
  const made = { name: "Orchestra", member_ids: ["eva"] };
  const { group_id } = await server.ask<{ group_id: string }>("POST", "/group/create", made, token);
  await server.say(token, { recv_id: "eva" }, "Hello Eva");
  await server.say(token, { group_id }, "We begin at eight");
  await eva.line("Orchestra").click();
  await eva.bubble("We begin").getByText("Finn", { exact: true }).waitFor();
  await eva.page.getByRole("link", { name: "Group details" }).click();
  const panel = eva.page.getByRole("complementary", { name: "Group details" });
  await panel.getByRole("link", { name: "Finn" }).waitFor();

  await server.ask("PUT", "/group/member_info", { group_id, group_nickname: "First violin", group_avatar: "🎻" }, token);
  await eva.bubble("We begin").getByText("First violin").waitFor();
  await eva.bubble("We begin").getByText("🎻").waitFor();
  await panel.getByRole("link", { name: "First violin" }).getByText("🎻").waitFor();
  await eva.line("Orchestra").getByText("First violin: We begin at eight").waitFor();
  // Found by either name, and shown with the one of the group.
  await eva.field.pressSequentially("Fine, @fin");
  await eva.page.getByRole("option", { name: "First violin" }).waitFor();
  await eva.field.press("Enter");
  expect(await eva.field.inputValue()).toBe("Fine, @First violin ");
  await eva.field.press("Enter");
  await eva.bubble("Fine,").locator("a.mention", { hasText: "@First violin" }).waitFor();

  await eva.line("Finn").click();
  await eva.page.locator(".head h1", { hasText: "Finn" }).waitFor();
});
