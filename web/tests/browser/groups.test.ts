import { afterAll, beforeAll, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

let world: World;
let anna: Person;
let ben: Person;
let cora: Person;
let code: string;

beforeAll(async () => {
  world = await World.start();
  const viewport = { width: 1400, height: 900 };
  [anna, ben, cora] = await Promise.all([
    world.person("anna", { nickname: "Anna", viewport }),
    world.person("ben", { nickname: "Ben", viewport }),
    world.person("cora", { nickname: "Cora", viewport }),
  ]);
});

afterAll(() => world?.stop());

/** Opens the details of the group. */
async function panelOf(person: Person) {
  const panel = person.page.getByRole("complementary", { name: "Group details" });
  if (!(await panel.isVisible())) await person.page.getByRole("link", { name: "Group details" }).click();
  await panel.getByRole("heading", { name: "Members" }).waitFor();
  return panel;
}

/** Chooses from the menu of a member. */
async function toMember(person: Person, name: string, choice: string): Promise<void> {
  const panel = await panelOf(person);
  await panel.getByRole("button", { name: `More: ${name}` }).click();
  await person.page.getByRole("menuitem", { name: choice }).click();
}

test("a group is made, and those invited see it", async () => {
  await anna.page.getByRole("button", { name: "New conversation" }).click();
  await anna.page.getByRole("menuitem", { name: "New group" }).click();
  await anna.page.getByRole("textbox", { name: "Group name" }).fill("Book club");
  await anna.page.getByRole("combobox", { name: "Invite people" }).fill("ben");
  await anna.page.getByRole("button", { name: "Create group" }).click();
  await anna.field.waitFor();
  await ben.line("Book club").waitFor();
});

test("a mention is picked from a list, and seen in theirs", async () => {
  await anna.field.pressSequentially("What do you think, @be");
  await anna.page.getByRole("option", { name: "Ben" }).waitFor();
  await anna.field.press("Enter");
  expect(await anna.field.inputValue()).toBe("What do you think, @Ben ");
  await anna.field.press("Enter");
  await ben.line("Book club").getByText("You were mentioned").waitFor({ state: "attached" });
  await ben.line("Book club").click();
  await ben.bubble("What do you think").locator(".mention.me").waitFor();
  await anna.reaches("What do you think", "read");

  await anna.field.pressSequentially("@al");
  await anna.page.getByRole("option", { name: "all" }).waitFor();
  await anna.field.fill("");
  await ben.field.pressSequentially("@al");
  expect(await ben.page.getByRole("option", { name: "all" }).count()).toBe(0); // not offered to ordinary members
  await ben.field.fill("");
});

test("who has read it is known", async () => {
  await anna.choose("What do you think", "Who has read it");
  await anna.page.getByText("Read by 1").waitFor();
  await anna.page.getByRole("dialog").getByText("Ben").waitFor();
  await anna.page.keyboard.press("Escape");
  await anna.page.getByRole("dialog").waitFor({ state: "detached" });
});

test("somebody asks to join by the code, and is let in", async () => {
  code = (await (await panelOf(anna)).locator("code").first().textContent()) ?? "";
  expect(code).toMatch(/^\w{4,}$/);
  await cora.page.getByRole("button", { name: "New conversation" }).click();
  await cora.page.getByRole("menuitem", { name: "Join a group" }).click();
  await cora.page.getByRole("textbox", { name: "Group code or ID" }).fill(code);
  await cora.page.getByRole("textbox", { name: "Message to the admins" }).fill("I like books");
  await cora.page.getByRole("button", { name: "Join" }).click();
  await cora.page.getByText("Request sent.").waitFor();
  const panel = await panelOf(anna);
  await panel.getByText("I like books").waitFor();
  await panel.getByRole("button", { name: "Approve" }).click();
  await cora.page.getByText("You are now in Book club.").waitFor();
  await cora.line("Book club").click();
  await cora.say("Thanks for having me");
  await ben.bubble("Thanks for having me").waitFor();
  await ben.page.getByText("Cora joined").waitFor();
});

test("roles, silence and a new name", async () => {
  await toMember(anna, "Ben", "Make admin");
  await (await panelOf(anna)).getByText("Admin", { exact: true }).waitFor();
  await toMember(ben, "Cora", "Mute for an hour");
  await cora.page.getByText("You were muted").waitFor();
  await cora.page.getByText("You are muted in this group until").waitFor();
  await toMember(ben, "Cora", "Unmute");
  await cora.page.getByText("You can post again").waitFor();
  await cora.say("can you hear me?");
  await ben.bubble("can you hear me?").waitFor();

  const panel = await panelOf(anna);
  await panel.getByLabel("Only admins can post").click();
  await cora.page.getByText("Only admins can post now").waitFor();
  await cora.page.getByText("Only admins can post in this group.").waitFor();
  expect(await cora.field.count()).toBe(0);
  await panel.getByLabel("Only admins can post").click();

  await panel.getByRole("button", { name: "Edit" }).click();
  await panel.getByRole("textbox", { name: "Group name" }).fill("Novel club");
  await panel.getByRole("textbox", { name: "Announcement" }).fill("Next book: Middlemarch");
  await panel.getByRole("button", { name: "Save" }).click();
  await ben.line("Novel club").waitFor();
  await (await panelOf(ben)).getByText("Next book: Middlemarch").waitFor();
});

test("an admin takes back what a member said", async () => {
  await ben.choose("can you hear me?", "Unsend");
  await cora.page.getByText("An admin removed this message").waitFor();
});

test("somebody is removed, the group changes hands, and ends", async () => {
  await toMember(ben, "Cora", "Remove from group");
  await ben.page.getByRole("dialog").getByRole("button", { name: "Remove from group" }).click();
  await cora.page.getByText("You are no longer a member of this group.").first().waitFor();

  await toMember(anna, "Ben", "Transfer ownership");
  await anna.page.getByRole("dialog").getByRole("button", { name: "Transfer ownership" }).click();
  await (await panelOf(ben)).getByRole("button", { name: "Dissolve group" }).waitFor();
  // Requests in flight while the user leaves or the group ends are refused.
  for (const one of [anna, ben, cora]) one.allow(/status of 403/, /status of 410/);
  await (await panelOf(anna)).getByRole("button", { name: "Leave group" }).click();
  await anna.page.getByRole("dialog").getByRole("button", { name: "Leave group" }).click();
  await ben.page.getByText("Anna left").waitFor();

  await (await panelOf(ben)).getByRole("button", { name: "Dissolve group" }).click();
  await ben.page.getByRole("dialog").getByRole("button", { name: "Dissolve group" }).click();
  await ben.page.getByText("The group was dissolved").waitFor();
  const panel = ben.page.getByRole("complementary", { name: "Group details" });
  await panel.getByText("This group was dissolved.").waitFor();
  await ben.page.locator("section.chat").getByText("This group was dissolved.").waitFor();
  await ben.bubble("Thanks for having me").waitFor();
  expect(await ben.field.count()).toBe(0);
});
