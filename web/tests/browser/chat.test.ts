import { afterAll, beforeAll, expect, test } from "vitest";
import { Cutter } from "./cutter.ts";
import { type Person, World } from "./world.ts";

let world: World;
let cutter: Cutter;
let anna: Person;
let ben: Person;
let cora: Person;
let groupId: string;

beforeAll(async () => {
  world = await World.start({}, "beside");
  const { server } = world;
  const viewport = { width: 1400, height: 900 };
  cutter = await Cutter.start(server.url);
  world.site.aim(cutter.url);
  anna = await world.person("anna", { nickname: "Anna", viewport });
  ben = await world.person("ben", { nickname: "Ben", viewport, locale: "en-US" });
  cora = await world.person("cora", { nickname: "Cora", viewport });
  const made = { name: "Garden", member_ids: ["ben", "cora"] };
  groupId = (await server.ask<{ group_id: string }>("POST", "/group/create", made, await server.token("anna"))).group_id;
});

afterAll(async () => {
  await world?.stop();
  await cutter?.stop();
});

const texts = ({ page }: Person) => page.locator("article .text").allTextContents();

test("what happened in a group stays, also with the first message and after a reload", async () => {
  const token = await world.server.token("anna");
  await ben.line("Garden").click();
  await world.server.ask("PUT", "/group/update", { group_id: groupId, name: "Orchard" }, token);
  await ben.page.getByText("Anna renamed the group to “Orchard”").waitFor();
  await world.server.say(token, { group_id: groupId }, "the first message");
  await ben.bubble("the first message").waitFor();
  await ben.page.getByText("Anna renamed the group to “Orchard”").waitFor();
  await world.server.ask("POST", "/group/set_role", { group_id: groupId, user_id: "cora", role: 1 }, token);
  await ben.page.getByText("Cora is now an admin").waitFor();
  await world.server.say(token, { group_id: groupId }, "the second message");
  await world.server.ask("POST", "/group/set_role", { group_id: groupId, user_id: "cora", role: 0 }, token);
  await ben.page.getByText("Cora is no longer an admin").waitFor();

  await ben.page.reload();
  await ben.bubble("the second message").waitFor();
  await ben.page.getByText("Cora is no longer an admin").waitFor();
  const rows = await ben.page.locator("[data-key]").allTextContents();
  const place = (text: string) => rows.findIndex((row) => row.includes(text));
  const order = ["renamed the group", "the first message", "now an admin", "the second message", "no longer an admin"];
  expect(order.map(place)).toEqual(order.map(place).sort((a, b) => a - b));
  expect(order.map(place)).not.toContain(-1);
});

test("in a group, read means by everybody, and it is known after a reload", async () => {
  await anna.line("Orchard").click();
  await anna.say("Who has seen this?");
  await ben.bubble("Who has seen this?").waitFor();
  await anna.bubble("Who has seen this?").getByText("Read by 1").waitFor();
  expect(await anna.bubble("Who has seen this?").getAttribute("data-state")).not.toBe("read");
  await anna.page.reload();
  await anna.bubble("Who has seen this?").getByText("Read by 1").waitFor();
  await cora.line("Orchard").click();
  await anna.reaches("Who has seen this?", "read");
  await anna.page.goto(world.site.url); // no conversation is open
  await anna.page.reload();
  await anna.line("Orchard").locator("[data-state=read]").waitFor();
  await anna.line("Orchard").click();
  await anna.reaches("Who has seen this?", "read");
  expect(await anna.bubble("Who has seen this?").getByText("Read by").count()).toBe(0);
});

test("whoever is muted sees it before typing, until when, and a refused message hides no newer ones", async () => {
  const token = await world.server.token("anna");
  const mute = (seconds: number) =>
    world.server.ask("POST", "/group/mute", { group_id: groupId, user_id: "cora", seconds }, token);
  for (const one of [anna, ben, cora]) {
    one.allowBadDays();
    await one.line("Orchard").click();
    await one.field.waitFor();
  }
  cutter.cut();
  await cora.page.getByText("The server is not answering.").waitFor();
  await cora.say("said while away");
  await cora.reaches("said while away", "sending");
  await mute(3_600);
  cutter.mend();
  await cora.reaches("said while away", "refused");
  await cora.page.getByText(/You are muted in this group until \d?\d:\d\d/).waitFor();
  expect(await cora.field.count()).toBe(0);

  await ben.say("newer than that");
  await cora.bubble("newer than that").waitFor();
  expect((await texts(cora)).slice(-2)).toEqual(["said while away", "newer than that"]);
  await cora.line("Orchard").getByText("newer than that").waitFor();
  await cora.page.reload();
  await cora.bubble("newer than that").waitFor();
  await cora.reaches("said while away", "refused");
  expect((await texts(cora)).slice(-2)).toEqual(["said while away", "newer than that"]);

  await mute(0);
  await cora.field.waitFor();
  await cora.page.getByRole("button", { name: "Discard" }).click();
  await mute(2);
  await cora.page.getByText("You are muted in this group until").waitFor();
  await cora.field.waitFor(); // it ends by itself
  await world.server.ask("POST", "/group/mute_all", { group_id: groupId, on: true }, token);
  await cora.page.getByText("Only admins can post in this group.").waitFor();
  expect(await cora.field.count()).toBe(0);
  expect(await anna.field.count()).toBe(1);
  await world.server.ask("POST", "/group/mute_all", { group_id: groupId, on: false }, token);
  await cora.field.waitFor();
});

test("@ and Enter calls a person, everybody only if that is meant", async () => {
  await anna.field.pressSequentially("@");
  await anna.page.getByRole("option").first().waitFor();
  await anna.field.press("Enter");
  expect(await anna.field.inputValue()).toMatch(/^@(Ben|Cora) $/);
  await anna.field.fill("");
  await anna.field.pressSequentially("@al");
  await anna.page.getByRole("option", { name: "all" }).waitFor();
  expect(await anna.page.locator("[role=option][aria-selected=true]").count()).toBe(0);
  await anna.field.pressSequentially("l");
  await anna.field.press("Enter");
  expect(await anna.field.inputValue()).toBe("@all ");
  await anna.field.fill("");
  await anna.field.pressSequentially("@");
  await anna.field.press("ArrowUp");
  await anna.field.press("Enter");
  expect(await anna.field.inputValue()).toBe("@all ");
  await anna.field.fill("");
});

test("unsend can be undone for a moment, and ends with the page", async () => {
  await anna.chatWith("ben");
  await anna.say("I regret this");
  await ben.line("Anna").click();
  await ben.bubble("I regret this").waitFor();
  await anna.choose("I regret this", "Unsend");
  await anna.page.getByText("You unsent this message").waitFor();
  await anna.page.getByRole("button", { name: "Undo" }).click();
  await anna.bubble("I regret this").waitFor();
  await anna.page.waitForTimeout(5_500);
  expect(await ben.bubble("I regret this").count()).toBe(1);

  await anna.choose("I regret this", "Unsend");
  await ben.page.getByText("Anna unsent this message").first().waitFor({ timeout: 8_000 });
  expect(await anna.page.getByRole("button", { name: "Undo" }).count()).toBe(0);

  await anna.say("this one, too");
  await ben.bubble("this one, too").waitFor();
  await anna.choose("this one, too", "Unsend");
  await anna.page.reload();
  await ben.bubble("this one, too").waitFor({ state: "detached", timeout: 4_000 });
});

test("a text is copied, or selected where the browser does not copy", async () => {
  const { page } = anna;
  await anna.say("copy me, please");
  await anna.reaches("copy me, please", "read");
  await anna.choose("copy me, please", "Copy text");
  await page.getByText("Copied", { exact: true }).waitFor();
  await page.getByText("Copied", { exact: true }).waitFor({ state: "detached", timeout: 8_000 });
  await page.evaluate(() => {
    document.execCommand = () => false;
    navigator.clipboard.writeText = () => Promise.reject(new Error("not allowed"));
  });
  await anna.choose("copy me, please", "Copy text");
  await page.getByText("Selected. Copy it with your keyboard.").waitFor();
  expect(await page.getByText("Copied", { exact: true }).count()).toBe(0);
  expect(await page.evaluate(() => String(getSelection()))).toBe("copy me, please");
  await page.evaluate(() => getSelection()?.removeAllRanges());
});

test("files are refused with a word, and nobody leaves the page", async () => {
  const { page } = anna;
  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["x"], "x.png", { type: "image/png" }));
    return transfer;
  });
  const hint = page.getByText("Files and pictures cannot be sent yet.");
  for (const where of ["[role=log]", "nav", "textarea"]) {
    for (const type of ["dragover", "drop"]) {
      const goesOn = await page.locator(where).first().evaluate(
        (node, [name, dataTransfer]) =>
          node.dispatchEvent(new DragEvent(name as string, { dataTransfer: dataTransfer as DataTransfer, bubbles: true, cancelable: true })),
        [type, data] as const,
      );
      expect(goesOn, `${type} on ${where}`).toBe(false); // the browser would open it
    }
    await hint.waitFor();
  }
  await hint.waitFor({ state: "detached", timeout: 8_000 });
  const paste = (text?: string) =>
    anna.field.evaluate((node, words) => {
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File(["x"], "x.png", { type: "image/png" }));
      if (words !== undefined) clipboardData.setData("text/plain", words);
      return node.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, text);
  expect(await paste()).toBe(false);
  await hint.waitFor();
  expect(await paste("cells of a table")).toBe(true); // its text is pasted
});

test("links lead where they say, also in Arabic", async () => {
  await ben.say("Look (https://example.org/a_(b)) or www.example.org, and write to ann@example.org.");
  await ben.say("انظر https://example.org/c?d=1 الآن");
  await anna.bubble("انظر").waitFor();
  const links = anna.page.locator("article a");
  const found = await links.evaluateAll((all) => all.map((one) => `${one.textContent} ${one.getAttribute("href")} ${one.getAttribute("rel")}`));
  const rel = "noopener noreferrer nofollow";
  expect(found.slice(-4)).toEqual([
    `https://example.org/a_(b) https://example.org/a_(b) ${rel}`,
    `www.example.org https://www.example.org ${rel}`,
    `ann@example.org mailto:ann@example.org ${rel}`,
    `https://example.org/c?d=1 https://example.org/c?d=1 ${rel}`,
  ]);
  expect(await links.last().evaluate((node) => getComputedStyle(node).direction)).toBe("ltr");
  expect(await anna.bubble("انظر").locator(".text").evaluate((node) => getComputedStyle(node).direction)).toBe("rtl");
});

test("one time for what is said in a row, in the way of the place, and large emoji", async () => {
  for (const text of ["one", "two", "three"]) await ben.say(text);
  await ben.reaches("three", "read");
  const times = async (text: string) => (await ben.bubble(text).locator(".meta time").allTextContents()).map((time) => time.replace(/\s/g, " "));
  expect(await times("one")).toEqual([]);
  expect(await times("two")).toEqual([]);
  const [shown] = await times("three");
  expect(shown).toMatch(/^\d{1,2}:\d\d (AM|PM)$/);
  expect(shown).not.toMatch(/^0/);
  expect(await anna.bubble("three").locator(".meta time").textContent()).toMatch(/^\d\d:\d\d$/);
  expect(await ben.bubble("two").locator(".ticks").count()).toBe(0);
  expect(await ben.bubble("three").locator(".ticks").count()).toBe(1);

  await ben.say("🎉👍");
  const size = (text: string) => ben.bubble(text).locator(".text").evaluate((node) => Number.parseFloat(getComputedStyle(node).fontSize));
  await ben.bubble("🎉👍").waitFor();
  expect(await size("🎉👍")).toBeGreaterThan(2 * (await size("three")));
});

test("what is written in one tab is written in the other, and no older draft comes back", async () => {
  const second = await anna.open(`#/c/si_anna_ben`);
  const field = second.getByLabel("Write a message");
  await field.waitFor();
  await anna.field.fill("from the first tab");
  await expect.poll(() => field.inputValue()).toBe("from the first tab");
  await field.fill("from the second tab");
  await expect.poll(() => anna.field.inputValue()).toBe("from the second tab");
  await second.locator("article").filter({ hasText: "three" }).last().locator(".bubble").click({ button: "right" });
  await second.getByRole("menuitem", { name: "Reply" }).click(); // replaces the draft
  await anna.page.getByText("Replying to Ben").waitFor();
  expect(await anna.field.inputValue()).toBe("from the second tab");
  await anna.field.press("Enter");
  await expect.poll(() => field.inputValue()).toBe("");
  await second.close();
});

test("a link to nobody opens no chat, and the system's has no field", async () => {
  const { page } = anna;
  anna.allow(/status of 40[034]/);
  for (const [hash, words] of [
    ["#/c/si_anna_zzz", "There is no user with the ID “zzz”."],
    ["#/c/si_anna_anna", "This is you. You cannot chat with yourself."],
    ["#/c/sg_nothing", "There is no such group"],
  ] as const) {
    await page.goto(`${world.site.url}/${hash}`);
    await page.getByText(words).waitFor();
    await page.reload();
    await page.getByText(words).waitFor();
    expect(await anna.field.count(), hash).toBe(0);
  }
  await page.getByRole("link", { name: "Back to your conversations" }).click();
  await page.getByText("Choose a conversation").waitFor();

  await page.goto(`${world.site.url}/#/c/si_anna_system`);
  await page.getByText("Only the server can post here.").waitFor();
  await page.locator(".edge").waitFor({ state: "attached" });
  expect(await page.getByText("Say hello!").count()).toBe(0);
  await world.server.systemSay("anna", "Maintenance at noon");
  await anna.line("system").or(anna.line("System")).click();
  await anna.bubble("Maintenance at noon").waitFor();
  await page.getByRole("heading", { name: "System", exact: true }).waitFor();
  await page.getByText("Only the server can post here.").waitFor();
  expect(await anna.field.count()).toBe(0);
});

test("long names end with dots, and the id stands beside them", async () => {
  const { server } = world;
  const long = "Anneliese Wilhelmine von und zu der langen Strasse am Fluss";
  await server.register("longname", long);
  await server.say(await server.token("longname"), { recv_id: "anna" }, "hello");
  await anna.line("Anneliese").click();
  await anna.bubble("hello").waitFor();
  for (const width of [1400, 390]) {
    await anna.page.setViewportSize({ width, height: 900 });
    const id = anna.page.locator(".head .id");
    expect(await id.textContent()).toBe("longname");
    const box = (await id.boundingBox())!;
    expect(box.width).toBeGreaterThan(40);
    expect(await anna.page.locator(".head h1").getAttribute("title")).toBe(long);
    const more = (await anna.page.locator(".head .round").last().boundingBox())!;
    expect(box.x + box.width).toBeLessThanOrEqual(more.x);
    expect(more.x + more.width).toBeLessThanOrEqual(width);
    expect(await anna.page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
  }
  await anna.page.setViewportSize({ width: 1400, height: 900 });
});

test("while messages are on their way their shapes are seen", async () => {
  const { page } = ben;
  await page.goto(world.site.url);
  await page.reload(); // so that only the end of it is here
  let letGo = () => {};
  const held = new Promise<void>((go) => (letGo = go));
  await page.route("**/msg/pull*", async (route) => {
    await held;
    await route.continue();
  });
  await ben.line("Anna").click();
  await page.locator(".skeleton span").first().waitFor();
  expect(await page.locator("article").count()).toBe(0);
  letGo();
  await page.locator("article").first().waitFor();
  expect(await page.locator(".skeleton").count()).toBe(0);
  await page.unroute("**/msg/pull*");
});

test("on a phone Enter makes a line, and the button sends", async () => {
  const person = await world.guest({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
  await person.signIn("ben");
  await person.line("Anna").tap();
  await person.field.fill("first line");
  await person.field.press("Enter");
  await person.field.pressSequentially("second line");
  expect(await person.field.inputValue()).toBe("first line\nsecond line");
  expect(await person.field.getAttribute("enterkeyhint")).toBe("enter");
  await person.page.getByRole("button", { name: "Send" }).tap();
  await person.bubble("second line").waitFor();
  expect(await person.field.inputValue()).toBe("");
  expect(await person.field.evaluate((node) => node === document.activeElement)).toBe(true); // the keyboard stays
  await person.context.close();
});
