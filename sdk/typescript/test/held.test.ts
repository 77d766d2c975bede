import { expect, test } from "vitest";

import { Held } from "../src/held.js";
import type { Message } from "../src/index.js";

function message(seq: number, mine = false, important = false): Message {
  return {
    conversationId: "si_me_you",
    clientMsgId: `c${seq}`,
    serverMsgId: `s${seq}`,
    seq,
    from: mine ? "me" : "you",
    mine,
    type: "TEXT",
    body: `${seq}`,
    important,
    revoked: false,
    at: seq,
    state: mine ? "saved" : "received",
  };
}

function held(after: number, until: number): Held {
  const held = new Held(after);
  for (let seq = after + 1; seq <= until; seq += 1) held.append(message(seq));
  return held;
}

test("unread are the others' messages above the read cursor", () => {
  const run = held(0, 4);
  run.append(message(5, true));
  run.append(message(6, false, true));
  expect([run.unread, run.mentions]).toEqual([5, 1]);
  run.readTo(4);
  expect([run.unread, run.mentions]).toEqual([1, 1]);
  run.readTo(2);
  expect(run.unread).toBe(3);
  run.readTo(9);
  run.append(message(7));
  expect([run.unread, run.mentions]).toEqual([0, 0]);
});

test("what is unread before the run comes from the server's count", () => {
  const run = held(90, 95);
  run.readTo(50);
  run.hear({ upTo: 100, read: 50, unread: 40 });
  expect(run.unread).toBe(5);
  for (let seq = 96; seq <= 101; seq += 1) run.append(message(seq));
  expect(run.unread).toBe(41);
  run.prepend([message(89, true), message(90)]);
  expect(run.unread).toBe(41);
  run.readTo(101);
  expect(run.unread).toBe(0);
});

test("what speaks to us is counted once, also if it was told before it came", () => {
  const run = held(90, 95);
  run.readTo(50);
  run.hearMentions({ upTo: 98, read: 50, unread: 3 });
  expect(run.mentions).toBe(0);
  run.append(message(96, false, true));
  run.append(message(97));
  run.append(message(98, false, true));
  expect(run.mentions).toBe(3);
  run.append(message(99, false, true));
  expect(run.mentions).toBe(4);
  run.hearMentions({ upTo: 98, read: 50, unread: 3 });
  expect(run.mentions).toBe(4);
});

test("letting go of the oldest changes no count", () => {
  const run = held(0, 20);
  run.trim(5);
  expect([run.first, run.last, run.unread]).toEqual([16, 20, 20]);
  expect(run.at(15)).toBeUndefined();
  expect(run.find("s16")?.seq).toBe(16);
  run.prepend([message(14), message(15)]);
  expect(run.unread).toBe(20);
  run.readTo(20);
  expect(run.unread).toBe(0);
});

test("a new window begins without what was before it", () => {
  const run = held(0, 20);
  run.cutBefore(15);
  expect([run.first, run.last, run.unread]).toEqual([15, 20, 6]);
  run.cutBefore(31);
  expect([run.first, run.last, run.unread]).toEqual([31, 30, 0]);
});

test("a hole is a mistake of ours and never passes silently", () => {
  expect(() => held(0, 2).append(message(4))).toThrow("a hole");
  expect(() => held(5, 6).prepend([message(3)])).toThrow("a hole");
});
