import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, type Person, World } from "./world.ts";

let world: World;
let anna: Person;
let ben: Person;

beforeAll(async () => {
  world = await World.start();
  [anna, ben] = await Promise.all([world.guest(), world.person("ben", { nickname: "Ben Okri" })]);
});

afterAll(() => world?.stop());

test("somebody registers, with a word about what is missing", async () => {
  const { page } = anna;
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByRole("textbox", { name: "User ID" }).fill("an na");
  await page.locator("input[name=password]").fill("short");
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByText("Only letters, digits, dots and hyphens").waitFor();
  await page.getByText("Please enter a name others will see.").waitFor();
  await page.getByText("At least 8 characters, please.").waitFor();
  expect(await page.evaluate(() => document.activeElement?.getAttribute("name"))).toBe("username");

  anna.allow(/status of 409/);
  await page.getByRole("textbox", { name: "User ID" }).fill("ben");
  await page.getByRole("textbox", { name: "Display name" }).fill("Anna");
  await page.locator("input[name=password]").fill(PASSWORD);
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByText("This user ID is taken.").waitFor();

  await page.getByRole("textbox", { name: "User ID" }).fill("anna");
  await page.getByRole("button", { name: "Create an account" }).click();
  await anna.online();
  anna.id = "anna";
  await page.getByText("No conversations yet").waitFor();
});

test("a wrong password is told kindly", async () => {
  const guest = await world.guest();
  guest.allow(/status of 401/);
  await guest.page.getByRole("textbox", { name: "User ID" }).fill("ben");
  await guest.page.locator("input[name=password]").fill("wrong password");
  await guest.page.getByRole("button", { name: "Sign in" }).click();
  await guest.page.getByText("Incorrect user ID or password.").waitFor();
  await guest.context.close();
});

test("two people talk, and see how far their words are", async () => {
  await anna.chatWith("ben");
  await anna.say("Hello Ben");
  await anna.reaches("Hello Ben", "delivered");
  expect(await ben.page.title()).toBe("(1) Nexo");
  await ben.line("Anna").getByText("1 unread").waitFor({ state: "attached" });
  await ben.line("Anna").click();
  await ben.bubble("Hello Ben").waitFor();
  await anna.reaches("Hello Ben", "read");
  await ben.page.waitForFunction(() => document.title === "Nexo");

  await ben.say("Hello Anna\nhow are you?");
  await anna.bubble("how are you?").waitFor();
  await ben.reaches("Hello Anna", "read");
});

test("typing is seen, and presence", async () => {
  await ben.field.pressSequentially("I am well", { delay: 400 }); // TYPING is sent every few seconds
  await anna.page.getByText("is typing…").waitFor();
  await ben.field.fill("");
  await anna.page.locator("header").getByText("Online").waitFor({ timeout: 10_000 });
});

test("a reply leads to what it answers", async () => {
  await ben.choose("Hello Ben", "Reply");
  await ben.page.getByText("Replying to Anna").waitFor();
  await ben.say("Yes, hello!");
  const quote = anna.bubble("Yes, hello!").locator(".quote");
  expect(await quote.textContent()).toContain("Hello Ben");
  await quote.click();
  await anna.page.locator("article.flashed").filter({ hasText: "Hello Ben" }).waitFor();
  await anna.page.locator("article.flashed").waitFor({ state: "detached" });
  await anna.page.getByRole("log").focus();
  for (let stops = 0; stops < 20; stops += 1) {
    if (await quote.evaluate((node) => node === document.activeElement)) break;
    await anna.page.keyboard.press("Tab");
  }
  await anna.page.keyboard.press("Enter");
  await anna.page.locator("article.flashed").filter({ hasText: "Hello Ben" }).waitFor();
});

test("a message is taken back for both", async () => {
  await anna.say("Oops, wrong window");
  await ben.bubble("Oops, wrong window").waitFor();
  await anna.choose("Oops, wrong window", "Unsend");
  await anna.page.getByText("You unsent this message").waitFor();
  await ben.page.getByText("Anna unsent this message").first().waitFor();
  expect(await ben.page.getByText("wrong window").count()).toBe(0);
});

test("drafts stay with their conversation, also after a reload", async () => {
  await anna.field.fill("to be continued");
  await anna.page.reload();
  await anna.field.waitFor();
  expect(await anna.field.inputValue()).toBe("to be continued");
  await anna.field.fill("line one");
  await anna.field.press("Shift+Enter");
  await anna.field.pressSequentially("line two");
  expect(await anna.field.inputValue()).toBe("line one\nline two");
  await anna.field.press("Enter");
  await anna.reaches("line two", "read");
});

test("a conversation is pinned, muted and found", async () => {
  await world.server.register("carl", "Carl");
  const carl = await world.server.token("carl");
  await world.server.say(carl, { recv_id: "anna" }, "Hi from Carl");
  await anna.line("Carl").waitFor();
  await anna.line("Ben Okri").click({ button: "right" });
  await anna.page.getByRole("menuitem", { name: "Pin to top" }).click();
  await anna.line("Ben Okri").getByText("Pinned").waitFor({ state: "attached" });
  const first = anna.page.getByRole("navigation").getByRole("link").first();
  expect(await first.textContent()).toContain("Ben Okri");
  await anna.line("Carl").click({ button: "right" });
  await anna.page.getByRole("menuitem", { name: "Mute notifications" }).click();
  await anna.line("Carl").getByText("Notifications muted").waitFor({ state: "attached" });
  await anna.page.keyboard.press("Control+k");
  await anna.page.keyboard.type("car");
  await anna.line("Ben Okri").waitFor({ state: "detached" });
  await anna.page.keyboard.press("Enter");
  await anna.bubble("Hi from Carl").waitFor();
  await anna.page.goBack();
  await anna.bubble("line two").waitFor();
});

test("the profile and the password change", async () => {
  await ben.page.getByRole("link", { name: "Settings" }).click();
  await ben.page.getByRole("textbox", { name: "Display name" }).fill("Benjamin");
  await ben.page.getByRole("textbox", { name: "Picture" }).fill("🦊");
  await ben.page.getByRole("button", { name: "Save" }).click();
  await ben.page.getByText("Saved").waitFor();
  await ben.page.getByRole("textbox", { name: "Current password" }).fill(PASSWORD);
  await ben.page.getByRole("textbox", { name: "New password" }).fill("another horse");
  ben.allow(/status of 401/);
  await ben.page.getByRole("button", { name: "Change password" }).click();
  await ben.page.getByText("Password changed.").waitFor();
  await ben.line("Anna").click();
  await ben.say("still here");
  await ben.reaches("still here", "read");
});

test("signing out leaves nothing behind", async () => {
  await ben.field.fill("secret draft");
  await ben.page.getByRole("link", { name: "Settings" }).click();
  await ben.page.getByRole("button", { name: "Sign out", exact: true }).click();
  await ben.page.getByRole("dialog").getByRole("button", { name: "Sign out", exact: true }).click();
  await ben.page.getByText("Welcome back").waitFor();
  const kept = await ben.page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes("draft")));
  expect(kept).toEqual([]);
});
