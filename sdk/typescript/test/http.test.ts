import { expect, test } from "vitest";

import { Http } from "../src/http.js";
import { isPassing, Refused, Unreachable } from "../src/refusal.js";
import { FakeClock } from "./fake.js";

const tokens = { signInNumber: 1, token: async () => "t", renew: async () => "t", refused: () => {} };

function ask(answer: () => Promise<Response>, clock = new FakeClock()): Promise<unknown> {
  return new Http("http://server", answer, clock, 1000, tokens).get("/path", { a: 1, b: undefined });
}

const refusal = (reason: string, status: number, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify({ code: 1, message: "no", reason, request_id: "r" }), { status, headers });

test("a refusal carries its reason and when to come back", async () => {
  const failed = ask(async () => refusal("too_many_requests", 429, { "retry-after": "3" }));
  const error = await failed.catch((it: Refused) => it);
  expect(error).toBeInstanceOf(Refused);
  const wanted = { reason: "too_many_requests", status: 429, retryAfterMs: 3000, requestId: "r" };
  expect(error).toMatchObject(wanted);
  expect(isPassing(error)).toBe(true);
});

test("what does not pass by itself says so", async () => {
  const error = await ask(async () => refusal("group_not_found", 404)).catch((it: Refused) => it);
  expect(isPassing(error)).toBe(false);
});

test.each([
  ["a page of a proxy", async () => new Response("<html>", { status: 502 })],
  ["a reason nobody knows", async () => refusal("made_up", 400)],
  ["a broken line", () => Promise.reject(new TypeError("fetch failed"))],
])("%s is no answer", async (_, answer) => {
  const error = await ask(answer as () => Promise<Response>).catch((it: Error) => it);
  expect(error).toBeInstanceOf(Unreachable);
  expect(isPassing(error)).toBe(true);
});

test("nobody waits for ever", async () => {
  const clock = new FakeClock();
  const never = ((_: string, { signal }: RequestInit) =>
    new Promise((_, fail) => {
      signal?.addEventListener("abort", () => fail(new Error("aborted")));
    })) as unknown as () => Promise<Response>;
  const asked = ask(never, clock).catch((it: Error) => it);
  await clock.pass(1000);
  expect(await asked).toBeInstanceOf(Unreachable);
});
