import type { Change, Message } from "nexo-sdk";
import { dayOf } from "../time.ts";

/** A line of the history. */
export type Row =
  | { kind: "day"; key: string; at: number }
  | { kind: "unread"; key: string }
  | { kind: "note"; key: string; change: Change }
  | {
      kind: "message";
      key: string;
      message: Message;
      isFirst: boolean;
      isLast: boolean;
      /** How far it has come is said: the ones after it that belong together are not as far. */
      hasState: boolean;
    };

/** Messages of one person that follow each other this closely look like one. */
const CLOSE_MS = 5 * 60_000;

/** The same from being sent to being read. */
export function keyOf(message: Message): string {
  return message.mine ? `m${message.clientMsgId}` : `s${message.serverMsgId}`;
}

/** What to show: messages in order, between them the days, what happened, and where the unread begin. */
export function rowsOf(
  messages: readonly Message[],
  notes: readonly Change[] = [],
  unreadFrom = 0,
  hasOlder = false,
): Row[] {
  const rows: Row[] = [];
  let day = { from: 0, to: 0 };
  let isMarked = unreadFrom === 0;
  let note = 0;
  // What happened before the oldest message here has its place among older ones.
  while (hasOlder && note < notes.length && notes[note]!.at < (messages[0]?.at ?? 0)) note += 1;
  const enter = (at: number) => {
    // A clock that went back must not bring back a day.
    if (at < day.to) return;
    day = dayOf(at);
    rows.push({ kind: "day", key: `d${day.from}`, at });
  };
  const tell = (until: number) => {
    for (; note < notes.length && notes[note]!.at < until; note += 1) {
      const change = notes[note]!;
      enter(change.at);
      rows.push({ kind: "note", key: `n${change.changeSeq}`, change });
    }
  };
  messages.forEach((message, index) => {
    if (message.seq > 0) tell(message.at); // what has no place yet has no time of the server either
    enter(message.at);
    if (!isMarked && message.seq >= unreadFrom && !message.mine) {
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
      hasState: message.mine,
    });
    if (before?.kind === "message" && !joins) before.isLast = true;
  });
  tell(Number.POSITIVE_INFINITY);
  // A line between two messages also parts them.
  rows.forEach((row, index) => {
    if (row.kind !== "message") return;
    const next = rows[index + 1];
    if (next?.kind !== "message") row.isLast = true;
    else if (!row.isLast && isAsFar(row.message, next.message)) row.hasState = false;
  });
  return rows;
}

function isAsFar(one: Message, next: Message): boolean {
  return one.state === next.state && one.readBy === next.readBy;
}

function isClose(one: Message, next: Message): boolean {
  return one.from === next.from && next.at - one.at < CLOSE_MS && !one.revoked && !next.revoked;
}
