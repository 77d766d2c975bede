import { afterEach, expect, test } from "vitest";
import { Cutter } from "./cutter.ts";
import { PASSWORD, World } from "./world.ts";

let world: World;

afterEach(() => world?.stop());

test("the server is killed and comes back on the same data", async () => {
  world = await World.start({}, "beside");
  const [anna, ben] = [await world.person("anna"), await world.person("ben")];
  anna.allowBadDays();
  ben.allowBadDays();
  await anna.chatWith("ben");
  await anna.say("before");
  await anna.reaches("before", "delivered");
  await ben.line("anna").click();

  await world.server.halt("SIGKILL");
  await anna.page.getByText("The server is not answering.").waitFor();
  await anna.say("meanwhile");
  await anna.reaches("meanwhile", "sending");
  await world.server.run();
  await anna.page.getByRole("button", { name: "Try now" }).click();
  await anna.page.getByText("The server is not answering.").waitFor({ state: "detached" });
  await ben.bubble("meanwhile").waitFor({ timeout: 30_000 });
  await anna.reaches("meanwhile", "read");
  expect(await ben.page.locator("article").count()).toBe(2);
});

test("the wire is cut, the page is reloaded, and what was not sent still goes out", async () => {
  world = await World.start({}, "beside");
  const cutter = await Cutter.start(world.server.url);
  world.site.aim(cutter.url);
  const [anna, ben] = [await world.person("anna"), await world.person("ben")];
  anna.allowBadDays();
  ben.allowBadDays();
  await ben.chatWith("anna");
  await anna.chatWith("ben");
  await anna.say("one");
  await anna.reaches("one", "read");

  cutter.cut();
  await anna.page.getByText("The server is not answering.").waitFor();
  await anna.say("two");
  await anna.say("three");
  await anna.field.fill("a thought");
  await anna.page.reload();
  await anna.reaches("three", "sending");
  expect(await anna.field.inputValue()).toBe("a thought");
  cutter.mend();
  await ben.bubble("three").waitFor({ timeout: 30_000 });
  const texts = await ben.page.locator("article .text").allTextContents();
  expect(texts).toEqual(["one", "two", "three"]);
  await cutter.stop();
});

test("a server that answers nothing is noticed in about three seconds, and when it is back", async () => {
  world = await World.start({}, "beside");
  const anna = await world.person("anna");
  anna.allowBadDays();
  const banner = anna.page.getByText("The server is not answering.");
  await anna.page.waitForTimeout(3_000); // no banner while it answers
  expect(await anna.page.locator(".link .bar").count()).toBe(0);
  // The longest case: it stops right after an answer.
  const answered = new Promise<void>((done) => {
    anna.page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => String(payload).includes("PONG") && done()));
  });
  await anna.page.reload();
  await answered;
  world.server.freeze();
  await banner.waitFor({ timeout: 3_800 });
  // The connection is replaced; the banner stays all the time.
  for (let second = 0; second < 12; second += 1) {
    await anna.page.waitForTimeout(1_000);
    expect(await banner.count(), `after ${second} s`).toBe(1);
  }
  world.server.wake();
  await banner.waitFor({ state: "detached", timeout: 20_000 });
});

test("a browser without network says so at once, and comes back by itself", async () => {
  world = await World.start({}, "beside");
  const [anna, ben] = [await world.person("anna"), await world.person("ben")];
  anna.allowBadDays();
  await anna.chatWith("ben");
  await anna.context.setOffline(true);
  const banner = anna.page.getByText("You are offline.");
  await banner.waitFor({ timeout: 2_000 });
  expect(await anna.page.getByText("The server is not answering.").count()).toBe(0);
  await anna.say("as soon as I can");
  await anna.context.setOffline(false);
  await banner.waitFor({ state: "detached", timeout: 5_000 });
  await ben.line("anna").getByText("as soon as I can").waitFor();
});

test("a conversation that is here is shown while the server is away, and the rest comes later", async () => {
  world = await World.start({}, "beside");
  const { server } = world;
  const cutter = await Cutter.start(server.url);
  world.site.aim(cutter.url);
  const anna = await world.person("anna");
  anna.allowBadDays();
  await server.register("ben", "Ben");
  const ben = await server.token("ben");
  for (let index = 1; index <= 40; index += 1) await server.say(ben, { recv_id: "anna" }, `number ${index}.`);
  await anna.line("Ben").getByText("40 unread").waitFor({ state: "attached" });
  await anna.page.waitForTimeout(1_000); // until the server knows that they arrived
  await anna.page.reload(); // now they are history: only the end of it is here
  await anna.line("Ben").getByText("number 40.").waitFor();
  await anna.page.waitForTimeout(500);

  cutter.cut();
  await anna.page.getByText("The server is not answering.").waitFor();
  await anna.line("Ben").click();
  await anna.bubble("number 40.").waitFor({ timeout: 1_000 });
  expect(await anna.page.locator("article").count()).toBe(1);
  cutter.mend();
  await anna.bubble("number 1.").waitFor({ timeout: 30_000 });
  await anna.page.getByText("New messages", { exact: true }).waitFor();
  await cutter.stop();
});

test("a password that was changed is changed, also if signing in again fails", async () => {
  world = await World.start({}, "beside");
  const anna = await world.person("anna");
  anna.allowBadDays();
  await anna.page.locator("a.me").click();
  await anna.page.route("**/auth/login", (route) => route.abort());
  await anna.page.getByLabel("Current password").fill(PASSWORD);
  await anna.page.getByLabel("New password").fill("something else");
  await anna.page.getByRole("button", { name: "Change password" }).click();
  await anna.page.getByText("Your sign-in has ended").waitFor();
  await anna.page.unroute("**/auth/login");
  await anna.page.getByLabel(/Password/).first().fill("something else");
  await anna.page.getByRole("button", { name: "Sign in again" }).click();
  await anna.online();
});

const SHORT = { NEXO_AUTH__ACCESS_TOKEN_SECONDS: "3", NEXO_AUTH__REFRESH_GRACE_SECONDS: "0" };

test.each(["with locks", "without locks, as on pages without TLS"])("tabs share one sign-in, %s", async (locks) => {
  world = await World.start(SHORT, "beside");
  await world.server.register("anna");
  const anna = await world.guest();
  if (locks !== "with locks") {
    await anna.context.addInitScript(() => Object.defineProperty(navigator, "locks", { value: undefined }));
    await anna.page.reload();
  }
  await anna.signIn("anna");
  await world.server.register("ben");
  const second = await anna.open();
  const third = await anna.open();
  await Promise.all([anna.online(second), anna.online(third)]);
  let refreshes = 0;
  anna.context.on("request", (request) => {
    if (request.url().endsWith("/auth/refresh")) refreshes += 1;
  });
  await anna.page.waitForTimeout(6_000);
  expect(refreshes).toBeGreaterThan(1);
  expect(refreshes).toBeLessThan(9); // not three times as many
  for (const page of [anna.page, second, third]) {
    expect(await page.getByText("Your sign-in has ended").count()).toBe(0);
    await page.locator("#search").waitFor();
  }
  await anna.chatWith("ben");
  await anna.say("from the first tab");
  await second.getByRole("navigation").getByRole("link", { name: /ben/ }).click();
  await second.locator("article").filter({ hasText: "from the first tab" }).waitFor();

  anna.allow(/status of 401/);
  await second.getByRole("link", { name: "Settings" }).click();
  await second.getByRole("button", { name: "Sign out", exact: true }).click();
  await second.getByRole("dialog").getByRole("button", { name: "Sign out", exact: true }).click();
  for (const page of [anna.page, second, third]) await page.getByText("Welcome back").waitFor();
  await anna.signIn("anna", PASSWORD, third);
  await anna.online(second);
});

test("a tab that slept through refreshes takes what the others have", async () => {
  world = await World.start(SHORT, "beside");
  const anna = await world.person("anna");
  anna.allow(/status of 401/); // an old token is refused before it is exchanged
  const second = await anna.open();
  await anna.online(second);
  const cdp = await anna.context.newCDPSession(second);
  await cdp.send("Debugger.enable");
  await cdp.send("Debugger.pause");
  void second.evaluate(() => 0).catch(() => {}); // stops at the next statement
  await anna.page.waitForTimeout(5_000); // two refreshes without it
  await cdp.send("Debugger.resume").catch(() => {});
  await cdp.detach();
  await anna.page.waitForTimeout(4_000);
  for (const page of [anna.page, second]) {
    expect(await page.getByText("Your sign-in has ended").count()).toBe(0);
  }
});

test("somebody is kicked, is told so, and goes on with draft and unsent words", async () => {
  world = await World.start({ NEXO_SESSION__POLICY: "single" });
  const [anna, ben] = [await world.person("anna"), await world.person("ben")];
  anna.allowBadDays();
  await anna.chatWith("ben");
  await anna.say("hello");
  await anna.reaches("hello", "delivered");
  await anna.field.fill("half a thought");

  const other = await world.guest();
  await other.signIn("anna");
  await anna.page.getByText("You signed in somewhere else").waitFor();
  await anna.page.getByText("Nothing is lost").waitFor();
  other.allowBadDays();
  await anna.page.getByLabel(/Password/).first().fill(PASSWORD);
  await anna.page.getByRole("button", { name: "Sign in again" }).click();
  await anna.bubble("hello").waitFor();
  expect(await anna.field.inputValue()).toBe("half a thought");
  await anna.field.press("Enter");
  await ben.line("anna").click();
  await ben.bubble("half a thought").waitFor();
  await other.page.getByText("You signed in somewhere else").waitFor();
});

test("a sign-in that ended says so", async () => {
  world = await World.start({}, "beside");
  const anna = await world.person("anna");
  anna.allowBadDays();
  const body = { old_password: PASSWORD, new_password: "something else" };
  await world.server.ask("POST", "/user/change_password", body, await world.server.token("anna"));
  await anna.page.getByText("Your sign-in has ended").waitFor();
  await anna.page.getByLabel(/Password/).first().fill("something else");
  await anna.page.getByRole("button", { name: "Sign in again" }).click();
  await anna.online();
});
