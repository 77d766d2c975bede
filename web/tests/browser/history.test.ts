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
  // Sent concurrently, so the order is not that of the numbers; each is there once.
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
  // Undelivered messages come by themselves; afterwards a page starts at the end and loads upward.
  for (let delivered = 0; delivered < MANY; ) {
    await anna.page.waitForTimeout(200);
    const { heads } = await world.server.ask<{ heads: Array<{ delivered_seq: number }> }>(
      "GET",
      "/conversation/heads",
      undefined,
      annas,
    );
    delivered = heads[0]!.delivered_seq;
  }
  await anna.page.reload();
});

afterAll(() => world?.stop());

/** Scrolls a fixed distance per frame; returns the frame times, shortest first. */
function scroll(byPixels: number, frames: number): Promise<number[]> {
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
      return times.sort((a, b) => a - b);
    },
    [byPixels, frames],
  );
}

test("paging upward keeps what one looks at in its place", async () => {
  const { page } = anna;
  await anna.line("Ben").click();
  const log = page.getByRole("log");
  await log.locator("article").first().waitFor();
  const height = () => page.locator(".space").evaluate((node) => node.clientHeight);
  await page.route("**/msg/pull*", async (route) => {
    await new Promise((later) => setTimeout(later, 700));
    await route.continue();
  });
  await page.waitForTimeout(300);
  await log.hover();
  let pages = 0;
  for (let step = 0; pages < 3 && step < 60; step += 1) {
    await log.evaluate((box) => (box.scrollTop = Math.min(box.scrollTop, 3_000)));
    await page.mouse.wheel(0, -700);
    await page.waitForTimeout(150); // drawn, but the next page is not there yet
    const before = { ...(await place()), height: await height() };
    const isBusy = await page.getByText("Loading earlier messages…").count();
    if (isBusy === 0) continue;
    await page.waitForFunction((was) => document.querySelector(".space")!.clientHeight > was + 1_000, before.height);
    await page.waitForTimeout(50);
    const y = await page.locator(`[data-key="${before.key}"]`).evaluate((node) => node.getBoundingClientRect().top);
    expect(Math.abs(y - before.y)).toBeLessThan(2);
    pages += 1;
  }
  expect(pages).toBe(3);
  await page.unroute("**/msg/pull*");
});

/** A visible row and its position. */
function place(): Promise<{ key: string; y: number }> {
  return anna.page.evaluate(() => {
    const { top } = document.querySelector("[role=log]")!.getBoundingClientRect();
    const rows = [...document.querySelectorAll<HTMLElement>("[data-key]")];
    const row = rows.find((one) => one.getBoundingClientRect().top >= top + 150)!;
    return { key: row.dataset["key"]!, y: row.getBoundingClientRect().top };
  });
}

test("ten thousand messages scroll smoothly", async () => {
  const { page } = anna;
  const started = Date.now();
  for (;;) {
    await page.evaluate(() => (document.querySelector("[role=log]")!.scrollTop = 300));
    if (await page.getByText("This is the beginning of your conversation.").isVisible()) break;
    expect(Date.now() - started).toBeLessThan(50_000);
    await page.waitForTimeout(20);
  }
  const loadMs = Date.now() - started;
  const drawn = await page.locator("[data-key]").count();
  expect(drawn).toBeLessThan(120);
  const [reading, hurry, flight] = [await scroll(120, 300), await scroll(-480, 120), await scroll(3_000, 100)];
  console.log(`history: ${MANY} messages in ${loadMs} ms, ${drawn} rows drawn`);
  console.log(`  reading, 120 px a frame: ${summary(reading)}`);
  console.log(`  hurrying, 480 px a frame: ${summary(hurry)}`);
  console.log(`  flying, 3000 px a frame: ${summary(flight)}`);
  // A frame budget for a busy machine: it also runs a server and other pages.
  expect(part(reading, 0.95)).toBeLessThan(50);
});

function part(times: number[], share: number): number {
  return times[Math.min(times.length - 1, Math.floor(times.length * share))]!;
}

function summary(times: number[]): string {
  const late = times.filter((time) => time > 25).length;
  const [p50, p95, most] = [part(times, 0.5), part(times, 0.95), part(times, 1)].map((time) => time.toFixed(1));
  return `p50 ${p50} ms, p95 ${p95} ms, longest ${most} ms, ${late} of ${times.length} frames late`;
}

test("jumping to the newest works from far away, and counts what came", async () => {
  const { page } = anna;
  await page.evaluate(() => (document.querySelector("[role=log]")!.scrollTop = 0));
  const ben = await world.server.token("ben");
  await world.server.say(ben, { recv_id: "anna" }, "the newest of all");
  await page.getByRole("button", { name: /new messages?$/ }).click();
  await anna.bubble("the newest of all").waitFor();
  await page.getByRole("button", { name: /newest|new message/ }).waitFor({ state: "detached" });
});

test("whoever came to a few new messages follows what comes after them", async () => {
  const ben = await world.server.token("ben");
  await anna.page.getByRole("link", { name: "Settings" }).first().click();
  await world.server.say(ben, { recv_id: "anna" }, "a new one");
  await anna.line("Ben").getByText("1 unread").waitFor({ state: "attached" });
  await anna.line("Ben").click();
  await anna.page.getByText("New messages", { exact: true }).waitFor();
  await anna.bubble("a new one").waitFor();
  await anna.page.waitForTimeout(300);
  for (let index = 1; index <= 12; index += 1) {
    await world.server.say(ben, { recv_id: "anna" }, `afterwards ${index}\nand\na few\nlines`);
  }
  const last = anna.bubble("afterwards 12");
  await last.waitFor();
  await anna.page.waitForTimeout(300);
  const box = (await last.boundingBox())!;
  const log = (await anna.page.getByRole("log").boundingBox())!;
  expect(box.y + box.height).toBeLessThanOrEqual(log.y + log.height);
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
