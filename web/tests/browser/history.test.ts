import { afterAll, beforeAll, expect, test } from "vitest";
import { type Person, World } from "./world.ts";

const MANY = 10_000;
let world: World;
let anna: Person;

beforeAll(async () => {
  world = await World.start();
  await world.server.register("ben", "Ben");
  await world.server.register("anna", "Anna");
  const [ben, annas] = [await world.server.token("ben"), await world.server.token("anna")];
  // Many at a time, so the order is not that of the numbers; each is there once.
  const say = async (index: number) => {
    const long = index % 7 === 0 ? ` ${"and a few more words ".repeat(index % 23)}` : "";
    if (index % 5 === 0) await world.server.say(annas, { recv_id: "ben" }, `mine ${index}${long}`);
    else await world.server.say(ben, { recv_id: "anna" }, `number ${index}${long}`);
  };
  let next = 1;
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      while (next <= MANY) await say(next++);
    }),
  );
  anna = await world.guest();
  await anna.signIn("anna");
});

afterAll(() => world?.stop());

interface Frames {
  times: number[];
  loaded: number;
}

/** Scrolls by a fixed way per frame and notes how long each frame took. */
function scroll(byPixels: number, frames: number): Promise<Frames> {
  return anna.page.evaluate(
    async ([by, count]) => {
      const box = document.querySelector("[role=log]") as HTMLElement;
      const times: number[] = [];
      let last = await new Promise<number>(requestAnimationFrame);
      for (let index = 0; index < count!; index += 1) {
        box.scrollTop += by!;
        const now = await new Promise<number>(requestAnimationFrame);
        times.push(now - last);
        last = now;
      }
      return { times, loaded: box.scrollHeight };
    },
    [byPixels, frames],
  );
}

test("paging upward keeps what one looks at in its place", async () => {
  const { page } = anna;
  await anna.line("Ben").click();
  const log = page.getByRole("log");
  await log.locator("article").first().waitFor();
  await page.waitForTimeout(500);
  await log.hover();
  for (let step = 0; step < 12; step += 1) {
    await page.mouse.wheel(0, -600);
    await page.waitForTimeout(60);
  }
  const place = () =>
    page.evaluate(() => {
      const box = document.querySelector("[role=log]")!.getBoundingClientRect();
      const row = [...document.querySelectorAll<HTMLElement>("[data-key]")].find(
        (one) => one.getBoundingClientRect().top >= box.top + 200,
      )!;
      return { key: row.dataset["key"]!, y: row.getBoundingClientRect().top, height: document.querySelector(".space")!.clientHeight };
    });
  const before = await place();
  // Waits until another page has come in above.
  await page.waitForTimeout(200);
  await page.evaluate(() => (document.querySelector("[role=log]")!.scrollTop -= 1200));
  await page.waitForTimeout(100);
  await page.evaluate(() => (document.querySelector("[role=log]")!.scrollTop += 1200));
  await page.waitForTimeout(500);
  const y = await page.evaluate((key) => document.querySelector(`[data-key="${key}"]`)!.getBoundingClientRect().top, before.key);
  expect(Math.abs(y - before.y)).toBeLessThan(2);
});

test("ten thousand messages scroll smoothly", async () => {
  const { page } = anna;
  const started = Date.now();
  for (;;) {
    await page.evaluate(() => (document.querySelector("[role=log]")!.scrollTop = 300));
    if (await page.getByText("This is the beginning of your conversation.").isVisible()) break;
    expect(Date.now() - started).toBeLessThan(60_000);
    await page.waitForTimeout(20);
  }
  const loadMs = Date.now() - started;
  const drawn = await page.locator("[data-key]").count();
  expect(drawn).toBeLessThan(120);
  const down = await scroll(120, 300);
  const fast = await scroll(3_000, 120);
  const up = await scroll(-240, 200);
  const times = [...down.times, ...fast.times, ...up.times].sort((a, b) => a - b);
  const p95 = times[Math.floor(times.length * 0.95)]!;
  const dropped = times.filter((time) => time > 25).length;
  console.log(
    `history: ${MANY} messages loaded in ${loadMs} ms, ${drawn} rows drawn; ${times.length} frames,` +
      ` p50 ${times[times.length >> 1]!.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms, longest ${times.at(-1)!.toFixed(1)} ms, ${dropped} above 25 ms`,
  );
  // On a machine that does other things too; by itself it is a frame of the screen.
  expect(p95).toBeLessThan(50);
});

test("jumping to the newest works from far away, and counts what came", async () => {
  const { page } = anna;
  await page.evaluate(() => (document.querySelector("[role=log]")!.scrollTop = 0));
  const ben = await world.server.token("ben");
  await world.server.say(ben, { recv_id: "anna" }, "the newest of all");
  await page.getByRole("button", { name: "1 new message" }).click();
  await anna.bubble("the newest of all").waitFor();
  await page.getByRole("button", { name: /newest|new message/ }).waitFor({ state: "detached" });
});

test("what is unread begins with a line, and one starts there", async () => {
  await anna.page.getByRole("link", { name: "Settings" }).first().click();
  const ben = await world.server.token("ben");
  for (let index = 0; index < 70; index += 1) await world.server.say(ben, { recv_id: "anna" }, `unread ${index}`);
  await anna.line("Ben").getByText("70 unread").waitFor({ state: "attached" });
  await anna.line("Ben").click();
  await anna.page.getByText("New messages", { exact: true }).waitFor();
  await anna.bubble("unread 0").waitFor();
  await anna.page.reload();
  await anna.bubble("unread 0").waitFor();
});
