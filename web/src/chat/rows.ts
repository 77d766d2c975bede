import type { Change, Message } from "nexo-sdk";
import { dayOf } from "../time.ts";

/** A row of the history. */
export type Row =
  | { kind: "day"; key: string; at: number }
  | { kind: "unread"; key: string }
  | { kind: "note"; key: string; change: Change }
  /** Messages in a row that the server cannot read any more. */
  | { kind: "damaged"; key: string; count: number }
  | {
      kind: "message";
      key: string;
      message: Message;
      isFirst: boolean;
      isLast: boolean;
      /** Whether its state is shown: the next message of the group of bubbles has another state. */
      hasState: boolean;
    };

/** Messages of one sender within this time are grouped. */
const CLOSE_MS = 5 * 60_000;

/** The same key from sending to read. */
export function keyOf(message: Message): string {
  return message.isMine ? `m${message.clientMsgId}` : `s${message.serverMsgId}`;
}

/** The rows: messages in order, day separators, changes of the group, and the unread marker. */
export function rowsOf(
  messages: readonly Message[],
  groupChanges: readonly Change[] = [],
  unreadFrom = 0,
  hasOlder = false,
): Row[] {
  const rows: Row[] = [];
  let day = { from: 0, to: 0 };
  let isMarked = unreadFrom === 0;
  let note = 0;
  // Changes before the oldest loaded message belong to older pages.
  while (hasOlder && note < groupChanges.length && groupChanges[note]!.at < (messages[0]?.at ?? 0)) note += 1;
  const addDay = (at: number) => {
    // A clock that went back must not repeat a day separator.
    if (at < day.to) return;
    day = dayOf(at);
    rows.push({ kind: "day", key: `d${day.from}`, at });
  };
  const addChanges = (until: number) => {
    for (; note < groupChanges.length && groupChanges[note]!.at < until; note += 1) {
      const change = groupChanges[note]!;
      addDay(change.at);
      rows.push({ kind: "note", key: `n${change.changeSeq}`, change });
    }
  };
  messages.forEach((message, index) => {
    if (message.seq > 0) addChanges(message.at); // an unsaved message has no server time yet
    if (message.isDamaged) {
      const above = rows.at(-1);
      if (above?.kind === "damaged") above.count += 1;
      else rows.push({ kind: "damaged", key: `x${message.seq}`, count: 1 });
      return;
    }
    addDay(message.at);
    if (!isMarked && message.seq >= unreadFrom && !message.isMine) {
      isMarked = true;
      rows.push({ kind: "unread", key: "unread" });
    }
    const before = rows.at(-1);
    const joins = before?.kind === "message" && isClose(before.message, message);
    const next = messages[index + 1];
    rows.push({
      kind: "message",
      key: keyOf(message),
      message,
      isFirst: !joins,
      isLast: next === undefined || !isClose(message, next) || next.at >= day.to,
      hasState: message.isMine,
    });
    if (before?.kind === "message" && !joins) before.isLast = true;
  });
  addChanges(Number.POSITIVE_INFINITY);
  // A row between two messages splits their group.
  rows.forEach((row, index) => {
    if (row.kind !== "message") return;
    const next = rows[index + 1];
    if (next?.kind !== "message") row.isLast = true;
    else if (!row.isLast && hasSameState(row.message, next.message)) row.hasState = false;
  });
  return rows;
}

function hasSameState(one: Message, next: Message): boolean {
  return one.state === next.state && one.readBy === next.readBy;
}

function isClose(one: Message, next: Message): boolean {
  return one.from === next.from && next.at - one.at < CLOSE_MS && !one.isRecalled && !next.isRecalled;
}
