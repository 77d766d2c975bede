import { expect, test } from "vitest";

import { Contiguous } from "../src/contiguous.js";

test("nothing beyond a hole is given out before it is filled", () => {
  const prefix = new Contiguous<string>(0);
  expect(prefix.add(1, "a")).toEqual(["a"]);
  expect(prefix.add(3, "c")).toEqual([]);
  expect(prefix.add(4, "d")).toEqual([]);
  expect(prefix.last).toBe(1);
  expect(prefix.gap()).toEqual({ from: 2, to: 4 });
  expect(prefix.add(2, "b")).toEqual(["b", "c", "d"]);
  expect(prefix.gap()).toBeUndefined();
});

test("what comes again is nothing new", () => {
  const prefix = new Contiguous<string>(0);
  prefix.add(1, "a");
  prefix.add(3, "c");
  expect(prefix.add(1, "again")).toEqual([]);
  expect(prefix.add(3, "again")).toEqual([]);
  expect(prefix.add(2, "b")).toEqual(["b", "c"]);
});

test("what somebody told us of is a hole until it comes", () => {
  const prefix = new Contiguous<string>(5);
  prefix.expect(7);
  expect(prefix.gap()).toEqual({ from: 6, to: 7 });
  prefix.lowerExpected(5);
  expect(prefix.gap()).toBeUndefined();
});

test("a place that is not ours is skipped, and what waited goes on", () => {
  const prefix = new Contiguous<string>(0);
  prefix.add(3, "c");
  prefix.add(5, "e");
  expect(prefix.skipTo(4)).toEqual(["e"]);
  expect(prefix.last).toBe(5);
  expect(prefix.skipTo(2)).toEqual([]);
  expect(prefix.last).toBe(5);
});

test("any order of arrival gives the same", () => {
  for (let round = 0; round < 200; round += 1) {
    const order = Array.from({ length: 12 }, (_, i) => i + 1);
    order.sort(() => Math.random() - 0.5);
    const prefix = new Contiguous<number>(0);
    const given = [...order, ...order].flatMap((seq) => prefix.add(seq, seq));
    expect(given).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  }
});
