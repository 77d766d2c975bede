import { MemoryStore } from "nexo-sdk";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { shareRefresh, TabStore } from "../../src/tabs.ts";

const kept = (userId: string, token: string) => ({
  userId,
  token,
  refreshToken: `${token}-refresh`,
  expiresAt: Date.now() + 60_000,
  lifeMs: 60_000,
});

let shared: MemoryStore;
let store: TabStore;
let answer: () => void;
let refresh: () => Promise<Response>;

beforeEach(async () => {
  const locks = { request: (_: string, __: object, run: () => Promise<unknown>) => run() };
  vi.stubGlobal("navigator", { locks });
  shared = new MemoryStore();
  store = new TabStore(shared);
  await store.set("session", kept("anna", "one"));
  const data = { token: "two", refresh_token: "two-refresh", expires_in: 60, user_info: { user_id: "anna" } };
  const slow = () => new Promise<Response>((done) => (answer = () => done(Response.json({ code: 0, data }))));
  const fetch = shareRefresh(store, slow as typeof globalThis.fetch);
  refresh = () => fetch("/auth/refresh", { method: "POST", body: JSON.stringify({ refresh_token: "one-refresh" }) });
});

afterEach(() => vi.unstubAllGlobals());

const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

test("what a refresh brings is there for the other tabs", async () => {
  const asked = refresh();
  await settled();
  answer();
  await asked;
  expect(await shared.get("session")).toMatchObject({ userId: "anna", token: "two" });
});

test("a refresh that is answered after signing out leaves nothing behind", async () => {
  const asked = refresh();
  await settled();
  await store.delete("session");
  answer();
  await asked;
  expect(await shared.get("session")).toBeUndefined();
});

test("nor does it take the place of whoever signed in meanwhile", async () => {
  const asked = refresh();
  await settled();
  await shared.set("session", kept("ben", "his"));
  answer();
  await asked;
  expect(await shared.get("session")).toMatchObject({ userId: "ben", token: "his" });
});
