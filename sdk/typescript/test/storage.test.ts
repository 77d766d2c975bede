import "fake-indexeddb/auto";

import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";

import { FileStore } from "../src/file.js";
import { BestEffortStore, IndexedDbStore, MemoryStore, type Store } from "../src/storage.js";

const folder = mkdtempSync(join(tmpdir(), "nexo-sdk-store-"));
afterAll(() => rmSync(folder, { recursive: true }));

const stores: Array<[string, () => Store]> = [
  ["memory", () => new MemoryStore()],
  ["IndexedDB", () => new IndexedDbStore("one")],
  ["a file", () => new FileStore(join(folder, "one"))],
];

describe.each(stores)("%s", (_, open) => {
  test("keeps, replaces, lists in order and forgets", async () => {
    const store = open();
    await store.set("outbox/me/2", { body: "two" });
    await store.set("outbox/me/1", { body: "one\n✓" });
    await store.set("outbox/me2/1", { body: "another's" });
    await store.set("session", { token: "t" });
    await store.set("outbox/me/2", { body: "2" });
    expect(await store.list("outbox/me/")).toEqual([
      ["outbox/me/1", { body: "one\n✓" }],
      ["outbox/me/2", { body: "2" }],
    ]);
    await store.delete("outbox/me/1");
    await store.delete("never");
    expect(await store.get("outbox/me/1")).toBeUndefined();
    expect(await store.get("session")).toEqual({ token: "t" });
  });
});

test("what lasts is there after a reload", async () => {
  await new IndexedDbStore("two").set("key", 1);
  expect(await new IndexedDbStore("two").get("key")).toBe(1);
  const path = join(folder, "two");
  const before = new FileStore(path);
  await before.set("a", 1);
  await before.set("b", 2);
  await before.delete("a");
  appendFileSync(path, '{"key":"c","val'); // killed in the middle of a write
  const after = new FileStore(path);
  expect(await after.list("")).toEqual([["b", 2]]);
  await after.set("d", 4);
  expect(await new FileStore(path).list("")).toEqual([
    ["b", 2],
    ["d", 4],
  ]);
});

test("a store that fails is told of and does no other harm", async () => {
  const reported: string[] = [];
  const fail = () => Promise.reject(new Error("full"));
  const broken = { get: fail, set: fail, delete: fail, list: fail };
  const store = new BestEffortStore(broken, (error) => reported.push(error.message));
  await store.set("a", 1);
  expect(await store.get("a")).toBeUndefined();
  expect(await store.list("")).toEqual([]);
  expect(reported).toEqual(["full", "full", "full"]);
});
