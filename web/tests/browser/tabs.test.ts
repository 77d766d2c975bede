import { afterEach, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

let world: World;

afterEach(() => world?.stop());

test("where only one device may be, the tabs of a browser are one", async () => {
  world = await World.start({ NEXO_SESSION__POLICY: "single" });
  const [anna, ben] = [await world.person("anna"), await world.person("ben")];
  const second = await anna.open();
  await anna.online(second);
  await second.waitForTimeout(1_500);
  await ben.chatWith("anna");
  await ben.say("hello, both of you");
  for (const page of [anna.page, second]) {
    await page.getByRole("navigation").getByText("hello, both of you").waitFor();
    expect(await page.getByText("You signed in somewhere else").count()).toBe(0);
  }
});

test("a tab shows whoever signs in beside it", async () => {
  world = await World.start();
  await world.server.register("anna", "Anna");
  await world.server.register("ben", "Ben");
  const guest = await world.guest();
  // As a suspended page while another user signed in.
  const deaf = await guest.context.newPage();
  await deaf.addInitScript(() => {
    Object.defineProperty(BroadcastChannel.prototype, "onmessage", { set: () => {} });
  });
  await deaf.goto(world.site.url);
  await guest.signIn("ben");
  await guest.page.getByText("Ben", { exact: true }).waitFor();
  await guest.signIn("anna", undefined, deaf);
  await guest.page.getByText("Anna", { exact: true }).waitFor();
  await guest.online();
  await guest.page.reload();
  await guest.page.getByText("Anna", { exact: true }).waitFor();
});

/** Records the notifications. */
async function fakeNotifications({ context, page }: Person): Promise<void> {
  await context.grantPermissions(["notifications"]);
  await context.addInitScript(() => {
    const shown: string[] = [];
    class Fake {
      static permission = "granted";
      static requestPermission = async () => "granted";
      onclick = null;
      constructor(_: string, options: { body: string }) {
        shown.push(options.body);
      }
      close(): void {}
    }
    Object.assign(globalThis, { Notification: Fake, shown });
  });
  await page.reload();
}

test("what a tab shows that is looked at, no other one notifies of", async () => {
  world = await World.start();
  await world.server.register("ben", "Ben");
  await world.server.register("anna", "Anna");
  const anna = await world.guest();
  await fakeNotifications(anna);
  await anna.signIn("anna");
  await anna.page.locator("a.me").click();
  await anna.page.getByLabel("Notify me while this page is hidden").check();
  const second = await anna.open();
  await anna.online(second);
  const turn = (page: typeof second, hidden: boolean) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  const shown = (page: typeof second) => page.evaluate(() => (globalThis as unknown as { shown: string[] }).shown);
  const ben = await world.server.token("ben");

  await turn(anna.page, true);
  await world.server.say(ben, { recv_id: "anna" }, "seen beside");
  await anna.page.getByRole("navigation").getByText("seen beside").waitFor({ state: "attached" });
  await anna.page.waitForTimeout(300);
  expect(await shown(anna.page)).toEqual([]);

  await turn(second, true);
  await world.server.say(ben, { recv_id: "anna" }, "nobody looks");
  await anna.page.waitForFunction(() => (globalThis as unknown as { shown: string[] }).shown.length > 0);
  expect(await shown(anna.page)).toEqual(["nobody looks"]);
});
