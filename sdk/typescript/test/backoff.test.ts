import { expect, test } from "vitest";

import { afterClose, Backoff } from "../src/backoff.js";
import { codes } from "../src/codes.js";
import { RateLimiter } from "../src/rateLimiter.js";
import { FakeClock } from "./fake.js";

test("waits double up to a bound and are spread between nothing and it", () => {
  const clock = new FakeClock();
  const backoff = new Backoff(clock, { baseMs: 100, maxMs: 500 });
  clock.chance = 0.999999;
  expect([1, 2, 3, 4, 5].map(() => backoff.next())).toEqual([100, 200, 400, 500, 500]);
  clock.chance = 0;
  expect(backoff.next()).toBe(0);
  expect(backoff.next(1000)).toBe(1000);
  backoff.reset();
  clock.chance = 0.5;
  expect(backoff.next()).toBe(50);
});

test("every reason that ends a connection says what to do next", () => {
  const wanted = { kicked: "giveUp", session_invalid: "giveUp", token_expired: "refresh" } as const;
  for (const [reason, { close }] of Object.entries(codes)) {
    if (typeof close !== "number") continue;
    const known = wanted[reason as keyof typeof wanted];
    if (known !== undefined) expect(afterClose(close), reason).toBe(known);
    if (codes[reason as keyof typeof codes].retry) expect(afterClose(close)).toBe("reconnect");
  }
  expect(afterClose(1006)).toBe("reconnect");
  expect(afterClose(4400)).toBe("giveUp");
});

test("a pace is kept, and saves up for a second at most", async () => {
  const clock = new FakeClock();
  const pace = new RateLimiter(clock);
  expect(pace.take()).toBe(0);
  pace.setRate(10);
  const takes = () => Array.from({ length: 20 }, () => pace.take()).filter((wait) => wait === 0).length;
  expect(takes()).toBe(9);
  await clock.pass(10_000);
  expect(takes()).toBe(9);
  const wait = pace.take();
  await clock.pass(wait);
  expect(pace.take()).toBe(0);
});
