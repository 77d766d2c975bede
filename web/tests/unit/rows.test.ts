import type { Change, Message } from "nexo-sdk";
import { expect, test } from "vitest";
import { keyOf, type Row, rowsOf } from "../../src/chat/rows.ts";

const NOON = +new Date(2026, 10, 16, 12);
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

function message(seq: number, at: number, from = "ben", more: Partial<Message> = {}): Message {
  const isMine = from === "me";
  return {
    conversationId: "si_ben_me",
    clientMsgId: `c${seq}`,
    serverMsgId: `${seq}`,
    seq,
    from,
    isMine,
    type: "TEXT",
    body: "",
    isImportant: false,
    isRecalled: false,
    at,
    state: isMine ? "saved" : "received",
    ...more,
  };
}

function note(at: number, changeSeq = 1): Change {
  return { conversationId: "sg_g", changeSeq, kind: "joined", by: "ben", at, userIds: ["cora"] };
}

/** The kinds in short; messages with whether they are the first and last of their group. */
function shape(rows: Row[]): string {
  const name = (row: Row) => (row.kind === "message" ? `m${row.isFirst ? "<" : ""}${row.isLast ? ">" : ""}` : row.kind);
  return rows.map(name).join(" ");
}

test("each day has a line, also over a clock that goes back", () => {
  const rows = rowsOf([message(1, NOON - DAY), message(2, NOON), message(3, NOON - DAY), message(4, NOON + MINUTE)]);
  expect(rows.filter((row) => row.kind === "day")).toHaveLength(2);
  expect(shape(rowsOf([]))).toBe("");
});

test("midnight parts what belongs together", () => {
  const midnight = +new Date(2026, 10, 16);
  const rows = rowsOf([message(1, midnight - 1000), message(2, midnight + 1000)]);
  expect(shape(rows)).toBe("day m<> day m<>");
});

test("what one says in a row belongs together, until a pause or somebody else", () => {
  const rows = rowsOf([
    message(1, NOON),
    message(2, NOON + MINUTE),
    message(3, NOON + 2 * MINUTE),
    message(4, NOON + 9 * MINUTE),
    message(5, NOON + 9 * MINUTE, "me"),
  ]);
  expect(shape(rows)).toBe("day m< m m> m<> m<>");
});

test("one that was taken back stands alone", () => {
  const rows = rowsOf([message(1, NOON), message(2, NOON, "ben", { isRecalled: true }), message(3, NOON)]);
  expect(shape(rows)).toBe("day m<> m<> m<>");
});

test("the unread begin with the first that is not mine", () => {
  const all = [message(1, NOON), message(2, NOON, "me"), message(3, NOON), message(4, NOON)];
  expect(shape(rowsOf(all, [], 2))).toBe("day m<> m<> unread m< m>");
  expect(shape(rowsOf(all, [], 0))).not.toContain("unread");
  expect(shape(rowsOf(all, [], 9))).not.toContain("unread");
  expect(shape(rowsOf(all, [], 1))).toBe("day unread m<> m<> m< m>");
});

test("what happened stands where it happened", () => {
  const all = [message(1, NOON), message(2, NOON + 2 * MINUTE)];
  expect(shape(rowsOf(all, [note(NOON + MINUTE)]))).toBe("day m<> note m<>");
  expect(shape(rowsOf(all, [note(NOON + 5 * MINUTE)]))).toBe("day m< m> note");
  expect(shape(rowsOf(all, [note(NOON - MINUTE)], 0, true))).toBe("day m< m>"); // it belongs to older pages
  expect(shape(rowsOf(all, [note(NOON - MINUTE)]))).toBe("day note m< m>"); // this is the beginning
  expect(shape(rowsOf([], [note(NOON)]))).toBe("day note");
});

test("how far they have come is said once for those that are as far", () => {
  const mine = (seq: number, state: Message["state"], readBy?: number) =>
    message(seq, NOON, "me", { state, ...(readBy !== undefined && { readBy }) });
  const said = (all: Message[]) => rowsOf(all).flatMap((row) => (row.kind === "message" ? row.hasState : []));
  expect(said([mine(1, "read"), mine(2, "read"), mine(3, "saved")])).toEqual([false, true, true]);
  expect(said([mine(1, "delivered", 2), mine(2, "delivered", 1)])).toEqual([true, true]);
  expect(said([message(1, NOON)])).toEqual([false]);
});

test("a key lasts from sending to being read, and no two are the same", () => {
  const sending = message(0, NOON, "me", { serverMsgId: "", state: "sending", clientMsgId: "x" });
  const saved = { ...sending, seq: 7, serverMsgId: "70", state: "read" as const };
  expect(keyOf(sending)).toBe(keyOf(saved));
  const all = Array.from({ length: 500 }, (_, index) => message(index + 1, NOON + index * 20 * MINUTE));
  const keys = rowsOf(all).map((row) => row.key);
  expect(new Set(keys).size).toBe(keys.length);
});

test("ten thousand messages are laid out in a moment", () => {
  const all = Array.from({ length: 10_000 }, (_, index) => message(index + 1, NOON - DAY * 30 + index * MINUTE));
  const started = performance.now();
  expect(rowsOf(all).length).toBeGreaterThan(10_000);
  expect(performance.now() - started).toBeLessThan(250);
});

test("messages that cannot be read any more are one line in their place", () => {
  const lost = (seq: number) => message(seq, 0, "", { isDamaged: true, serverMsgId: "" });
  const rows = rowsOf([message(1, NOON), lost(2), lost(3), message(4, NOON + MINUTE), lost(5)]);
  expect(shape(rows)).toBe("day m<> damaged m<> damaged");
  expect(rows.flatMap((row) => (row.kind === "damaged" ? [row.count] : []))).toEqual([2, 1]);
  expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
});
