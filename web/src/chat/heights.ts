/** The offset of every row from the top, and the total height as last entry. */
export type Offsets = Float64Array;

export function offsetsOf(heights: ArrayLike<number>): Offsets {
  const offsets = new Float64Array(heights.length + 1);
  let sum = 0;
  for (let index = 0; index < heights.length; index += 1) {
    sum += heights[index]!;
    offsets[index + 1] = sum;
  }
  return offsets;
}

/** The row at this offset; the first or last one outside the range. */
export function rowAt(offsets: Offsets, y: number): number {
  let [low, high] = [0, offsets.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle]! <= y) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

/** The rows to render for a view, with some spare on both sides for scrolling. */
export function windowOf(
  offsets: Offsets,
  top: number,
  height: number,
  spare: number,
): { from: number; to: number } {
  const count = offsets.length - 1;
  if (count <= 0) return { from: 0, to: 0 };
  return {
    from: rowAt(offsets, top - spare),
    to: Math.min(count, rowAt(offsets, top + height + spare) + 1),
  };
}

/** How far the row at `top` has moved because rows above were added, removed or measured. Zero if it is gone. */
export function shiftOf(
  before: { keys: readonly string[]; offsets: Offsets },
  after: { keys: readonly string[]; offsets: Offsets },
  top: number,
): number {
  if (before.keys.length === 0) return 0;
  const last = rowAt(before.offsets, top + 1);
  // The row at the top may be a day separator that moved; a row nearby serves as well.
  for (let index = last; index < Math.min(last + 8, before.keys.length); index += 1) {
    const now = indexOf(after.keys, before.keys[index]!, index + after.keys.length - before.keys.length);
    if (now >= 0) return after.offsets[now]! - before.offsets[index]!;
  }
  return 0;
}

/** Tries first the index it has if rows were only added at the top or at the end. */
function indexOf(keys: readonly string[], key: string, likely: number): number {
  if (keys[likely] === key) return likely;
  return keys.indexOf(key);
}

/** The estimated height of a row before it is rendered. */
export function estimate(text: string, perLine: number, line: number, rest: number): number {
  let lines = 0;
  let from = 0;
  while (lines < 200) {
    const to = text.indexOf("\n", from);
    const length = (to < 0 ? text.length : to) - from;
    lines += Math.max(1, Math.ceil(length / perLine));
    if (to < 0) break;
    from = to + 1;
  }
  return lines * line + rest;
}
