import { afterAll, beforeAll, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

let world: World;
let anna: Person;
let groupId: string;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  world = await World.start();
  const { server } = world;
  const names = [["ben", "Ben Okri"], ["cora", "Cora"], ["dan", "Dan Brown"], ["eve", "Eve"], ["far", "Far Away"]] as const;
  for (const [id, name] of names) {
    await server.register(id, name);
    tokens[id] = await server.token(id);
  }
  anna = await world.person("anna", { nickname: "Anna", viewport: { width: 1400, height: 900 } });
  tokens["anna"] = await server.token("anna");
  const made = { name: "Team", member_ids: ["anna", "cora", "dan"], join_type: "open" };
  groupId = (await server.ask<{ group_id: string }>("POST", "/group/create", made, tokens["ben"])).group_id;
  await server.say(tokens["eve"]!, { recv_id: "anna" }, "Hello from Eve");
  await anna.line("Eve").waitFor();
});

afterAll(() => world?.stop());

async function startNewChat(): Promise<void> {
  await anna.page.getByRole("button", { name: "New conversation" }).click();
  await anna.page.getByRole("menuitem", { name: "New private chat" }).click();
}

test("being added to a group is said, and marked until one looks", async () => {
  await anna.page.getByText("Ben Okri added you to Team.").waitFor();
  const line = anna.line("Team");
  await line.getByText("Ben Okri added you").waitFor();
  await line.getByText("New group").waitFor({ state: "attached" });
  await anna.page.reload();
  await line.getByText("Ben Okri added you").waitFor();
  await line.click();
  await anna.field.waitFor();
  await line.getByText("New group").waitFor({ state: "detached" });
  await anna.page.reload();
  await anna.line("Eve").click();
  await anna.bubble("Hello from Eve").waitFor();
  expect(await line.getByText("New group").count()).toBe(0);
});

test("a hidden page notifies of being added", async () => {
  const guest = await world.guest();
  await guest.context.grantPermissions(["notifications"]);
  await guest.page.addInitScript(() => {
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
  await guest.page.reload();
  await guest.signIn("far");
  await guest.page.locator("a.me").click();
  await guest.page.getByRole("switch", { name: "Notify me while this page is hidden" }).check();
  await guest.page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  const made = { name: "Far group", member_ids: ["far"] };
  await world.server.ask("POST", "/group/create", made, tokens["ben"]);
  await guest.page.waitForFunction(() => (globalThis as unknown as { shown: string[] }).shown.length > 0);
  const shown = await guest.page.evaluate(() => (globalThis as unknown as { shown: string[] }).shown);
  expect(shown).toEqual(["Far group: Ben Okri added you to Far group."]);
  await guest.context.close();
});

test("being added while the page was closed is marked, whatever one may read there", async () => {
  const { server } = world;
  const guest = await world.guest();
  await guest.signIn("far");
  await guest.line("Far group").waitFor();
  await guest.page.goto("about:blank");
  const made = { name: "Archive", history: "all" };
  const { group_id } = await server.ask<{ group_id: string }>("POST", "/group/create", made, tokens["ben"]);
  for (const text of ["one", "two", "three"]) await server.say(tokens["ben"]!, { group_id }, text);
  await server.ask("POST", "/group/invite", { group_id, user_ids: ["far"] }, tokens["ben"]);
  for (let round = 0; round < 205; round += 1) {
    await server.ask("POST", "/group/mute_all", { group_id, on: round % 2 === 0 }, tokens["ben"]);
  }
  await guest.page.goto(world.site.url);
  await guest.line("Archive").getByText("Ben Okri added you").waitFor();
  await guest.line("Archive").click();
  await guest.line("Archive").getByText("New group").waitFor({ state: "detached" });
  await guest.page.reload();
  await guest.page.getByText("Only admins can post in this group.").waitFor();
  expect(await guest.line("Archive").getByText("New group").count()).toBe(0);
  await guest.context.close();
});

test("a notice is shown above an open dialog", async () => {
  const { page } = anna;
  await startNewChat();
  const dialog = page.getByRole("dialog");
  await world.server.ask("POST", "/group/create", { name: "Late group", member_ids: ["anna"] }, tokens["ben"]);
  const notice = page.getByText("Ben Okri added you to Late group.");
  await dialog.getByText("Ben Okri added you to Late group.").waitFor();
  expect(await notice.count()).toBe(1);
  // Nothing is painted over it: the browser finds it at its own place, once it takes the pointer.
  const isOnTop = await notice.evaluate((node) => {
    (node as HTMLElement).style.pointerEvents = "auto";
    const { left, top, width, height } = node.getBoundingClientRect();
    return document.elementFromPoint(left + width / 2, top + height / 2) === node;
  });
  expect(isOnTop).toBe(true);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await notice.waitFor(); // it stays, now on the page
});

test("a private chat starts with somebody one knows, by name, or with an exact id", async () => {
  const { page } = anna;
  await startNewChat();
  const box = page.getByRole("combobox", { name: "Name or user ID" });
  await page.getByRole("option", { name: "Dan Brown" }).waitFor(); // of a group both are in
  await page.getByRole("option", { name: "Eve" }).waitFor(); // of a private chat
  expect(await page.getByRole("option", { name: "Far Away" }).count()).toBe(0);
  await box.fill("brown");
  await page.getByRole("option", { name: "Eve" }).waitFor({ state: "detached" });
  await box.press("Enter");
  await anna.field.waitFor();
  expect(await page.locator(".head h1").textContent()).toBe("Dan Brown");

  anna.allow(/status of 404/);
  await startNewChat();
  await box.fill("nobody");
  await page.getByRole("button", { name: "Start chatting" }).click();
  await page.getByText("There is no user with the ID nobody.").waitFor();
  await box.fill("far");
  await page.getByRole("button", { name: "Start chatting" }).click();
  await page.locator(".head h1", { hasText: "Far Away" }).waitFor();
});

test("a group is made of picked people, by keyboard", async () => {
  const { page } = anna;
  await page.getByRole("button", { name: "New conversation" }).click();
  await page.getByRole("menuitem", { name: "New group" }).click();
  await page.getByRole("textbox", { name: "Group name" }).fill("Picked");
  const box = page.getByRole("combobox", { name: "Invite people" });
  await page.getByRole("option", { name: "Dan Brown" }).waitFor();
  await box.fill("cor");
  await box.press("Enter");
  await box.fill("dan");
  await box.press("Enter");
  await page.getByRole("button", { name: "Remove Cora" }).waitFor();
  await box.press("Backspace");
  await page.getByRole("button", { name: "Remove Dan Brown" }).waitFor({ state: "detached" });
  await box.fill("nobody far");
  await page.getByRole("button", { name: "Create group" }).click();
  await page.getByText("There is no user with the ID nobody.").waitFor();
  await box.fill("");
  await page.getByRole("button", { name: "Create group" }).click();
  await anna.field.waitFor();
  await page.locator(".head", { hasText: "3 members" }).waitFor(); // Anna, Cora, Far
});

test("an invite names the id nobody has, and brings in the others", async () => {
  const { page } = anna;
  await anna.line("Team").click();
  await page.getByRole("link", { name: "Group details" }).click();
  await page.getByRole("button", { name: "Invite people" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("option", { name: "Eve" }).waitFor();
  expect(await dialog.getByRole("option", { name: "Dan Brown" }).count()).toBe(0); // is in already
  await dialog.getByRole("combobox").fill("eve nobody1 far nobody2");
  await dialog.getByRole("button", { name: "Invite", exact: true }).click();
  await dialog.getByText("There are no users with these IDs: nobody1, nobody2. The other 2 people joined.").waitFor();
  expect(await dialog.getByRole("combobox").inputValue()).toBe("nobody1 nobody2");
  await page.keyboard.press("Escape");
  const panel = page.getByRole("complementary", { name: "Group details" });
  await panel.getByText("Far Away").waitFor();
  const page1 = await world.server.ask<{ total: number }>("GET", `/group/members?group_id=${groupId}`, undefined, tokens["ben"]);
  expect(page1.total).toBe(6);
});

test("a profile opens from the members, a name, a mention, the head and the list", async () => {
  const { page } = anna;
  const profile = page.getByRole("complementary", { name: "Profile" });
  const panel = page.getByRole("complementary", { name: "Group details" });
  await panel.getByRole("link", { name: "Dan Brown" }).click();
  await profile.getByRole("heading", { name: "Dan Brown" }).waitFor();
  await profile.locator("code", { hasText: "dan" }).waitFor();
  await profile.getByRole("link", { name: "Close" }).click();
  await panel.waitFor(); // back among the members
  await panel.getByRole("link", { name: "Close" }).click();
  await world.server.say(tokens["cora"]!, { group_id: groupId }, "Hello from Cora");
  const body = { client_msg_id: "m1", session_type: 2, group_id: groupId, msg_type: 1, content: { text: "Ask @Dan Brown" }, mentions: ["dan"] };
  await world.server.ask("POST", "/msg/send", body, tokens["ben"]);
  await anna.bubble("Hello from Cora").getByRole("link", { name: "Cora" }).click();
  await profile.getByRole("heading", { name: "Cora" }).waitFor();
  await anna.bubble("Ask @Dan").getByRole("link", { name: "@Dan Brown" }).click();
  await profile.getByRole("heading", { name: "Dan Brown" }).waitFor();
  await profile.getByRole("link", { name: "Message" }).click();
  await page.locator(".head h1", { hasText: "Dan Brown" }).waitFor();
  await page.locator(".head a.who").click();
  await profile.waitFor();
  await page.keyboard.press("Escape");
  await profile.waitFor({ state: "detached" });
  await anna.line("Eve").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Profile" }).click();
  await profile.getByRole("heading", { name: "Eve" }).waitFor();
});

test("notifications are muted from a profile", async () => {
  const profile = anna.page.getByRole("complementary", { name: "Profile" });
  await profile.getByRole("switch", { name: "Mute notifications" }).click();
  await anna.line("Eve").getByText("Notifications muted").waitFor({ state: "attached" });
  await profile.getByRole("switch", { name: "Mute notifications" }).press("Space");
  await anna.line("Eve").getByText("Notifications muted").waitFor({ state: "detached" });
});

test("of a blocked chat nothing is shown until it is unblocked, then everything", async () => {
  const { page } = anna;
  const { server } = world;
  const profile = page.getByRole("complementary", { name: "Profile" });
  await profile.getByRole("button", { name: "Block" }).click();
  await page.getByRole("dialog").getByText("Nothing new from your private chat with Eve").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Block" }).click();
  await profile.getByText("You blocked this person.").waitFor();
  expect(await anna.field.count()).toBe(0);
  await server.say(tokens["eve"]!, { recv_id: "anna" }, "Can you see this?");
  // A message of another user follows, and heads are compared: still nothing.
  await server.say(tokens["dan"]!, { recv_id: "anna" }, "Hello from Dan");
  await anna.line("Dan Brown").getByText("Hello from Dan").waitFor();
  await page.reload();
  await anna.line("Eve").getByText("Blocked").waitFor();
  await page.waitForTimeout(1_500); // a gap would be pulled by now
  expect(await page.getByText("Can you see this?").count()).toBe(0);
  expect(await anna.line("Eve").getByText("unread").count()).toBe(0);
  await page.getByRole("complementary", { name: "Profile" }).getByRole("button", { name: "Unblock" }).click();
  await anna.bubble("Can you see this?").waitFor();
  await anna.field.waitFor();
});

test("somebody one has no private chat with is muted and blocked before they write", async () => {
  const { page } = anna;
  const { server } = world;
  const profile = page.getByRole("complementary", { name: "Profile" });
  const mute = profile.getByRole("switch", { name: "Mute notifications" });
  await anna.line("Team").click();
  await anna.bubble("Hello from Cora").getByRole("link", { name: "Cora" }).click();
  await profile.getByRole("heading", { name: "Cora" }).waitFor();
  expect(await mute.isChecked()).toBe(false);
  await mute.click();
  await expect.poll(() => mute.isChecked()).toBe(true);
  await page.reload();
  await expect.poll(() => mute.isChecked()).toBe(true);
  await profile.getByRole("button", { name: "Block" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Block" }).click();
  await profile.getByText("You blocked this person.").waitFor();
  await page.reload();
  await profile.getByText("You blocked this person.").waitFor();
  expect(await anna.line("Cora").count()).toBe(0); // nothing was said
  await server.say(tokens["cora"]!, { recv_id: "anna" }, "Psst");
  await server.say(tokens["dan"]!, { recv_id: "anna" }, "Second from Dan");
  await anna.line("Dan Brown").getByText("Second from Dan").waitFor();
  await anna.line("Cora").getByText("Blocked").waitFor();
  expect(await page.getByText("Psst").count()).toBe(0);
  await profile.getByRole("button", { name: "Unblock" }).click();
  await anna.line("Cora").getByText("Psst").waitFor();
  // A choice that she makes on another device is shown at once.
  await page.evaluate((hash) => (location.hash = hash), `#/c/sg_${groupId}/u/far`);
  await profile.getByRole("heading", { name: "Far Away" }).waitFor();
  expect(await mute.isChecked()).toBe(false);
  const choice = { conversation_id: "si_anna_far", recv_msg_opt: 1 };
  await server.ask("PUT", "/conversation/update", choice, tokens["anna"]);
  await expect.poll(() => mute.isChecked()).toBe(true);
});
