import { describe, expect, test } from "vitest";
import { estimate, offsetsOf, rowAt, shiftOf, windowOf } from "../../src/chat/heights.ts";

const offsets = offsetsOf([10, 20, 30, 40]);

test("offsets are sums", () => {
  expect([...offsets]).toEqual([0, 10, 30, 60, 100]);
  expect([...offsetsOf([])]).toEqual([0]);
});

test("the row at a height", () => {
  const cases = [[-5, 0], [0, 0], [9.9, 0], [10, 1], [29, 1], [30, 2], [60, 3], [99, 3], [1000, 3]] as const;
  for (const [y, row] of cases) expect(rowAt(offsets, y), `at ${y}`).toBe(row);
  expect(rowAt(offsetsOf([]), 5)).toBe(0);
});

test("every row is found at its own place, however many there are", () => {
  const many = offsetsOf(Array.from({ length: 10_000 }, (_, index) => 20 + (index % 97)));
  for (let index = 0; index < 10_000; index += 1) expect(rowAt(many, many[index]!)).toBe(index);
});

describe("the window", () => {
  test("covers the view and some more", () => {
    expect(windowOf(offsets, 30, 30, 0)).toEqual({ from: 2, to: 4 });
    expect(windowOf(offsets, 30, 20, 0)).toEqual({ from: 2, to: 3 });
    expect(windowOf(offsets, 30, 20, 25)).toEqual({ from: 0, to: 4 });
  });

  test("is small in a long list", () => {
    const many = offsetsOf(Array.from({ length: 10_000 }, () => 40));
    const { from, to } = windowOf(many, 200_000, 800, 700);
    expect(to - from).toBeLessThan(60);
    expect(many[from]!).toBeLessThanOrEqual(200_000 - 700);
    expect(many[to]!).toBeGreaterThanOrEqual(200_800 + 700);
  });

  test("of nothing is nothing", () => {
    expect(windowOf(offsetsOf([]), 0, 800, 100)).toEqual({ from: 0, to: 0 });
  });
});

describe("what one looks at stays", () => {
  const before = { keys: ["a", "b", "c", "d"], offsets };

  test("when older rows come on top", () => {
    const after = { keys: ["x", "y", "a", "b", "c", "d"], offsets: offsetsOf([50, 50, 10, 20, 30, 40]) };
    expect(shiftOf(before, after, 35)).toBe(100);
  });

  test("when newer rows come at the end", () => {
    const after = { keys: ["a", "b", "c", "d", "e"], offsets: offsetsOf([10, 20, 30, 40, 50]) };
    expect(shiftOf(before, after, 35)).toBe(0);
  });

  test("when a row above turns out to be higher, but not when one below does", () => {
    expect(shiftOf(before, { ...before, offsets: offsetsOf([15, 20, 30, 40]) }, 35)).toBe(5);
    expect(shiftOf(before, { ...before, offsets: offsetsOf([10, 20, 30, 90]) }, 35)).toBe(0);
  });

  test("when the day line that one looks at goes, by the row after it", () => {
    const lined = { keys: ["day", "a", "b"], offsets: offsetsOf([50, 40, 40]) };
    const after = { keys: ["day0", "x", "a", "b"], offsets: offsetsOf([50, 40, 40, 40]) };
    expect(shiftOf(lined, after, 10)).toBe(40);
  });

  test("and from nothing nothing moves", () => {
    expect(shiftOf({ keys: [], offsets: offsetsOf([]) }, before, 0)).toBe(0);
  });
});

test("estimates follow the text", () => {
  expect(estimate("short", 40, 20, 10)).toBe(30);
  expect(estimate("x".repeat(90), 40, 20, 10)).toBe(70);
  expect(estimate("a\nb\n\nc", 40, 20, 10)).toBe(90);
});
