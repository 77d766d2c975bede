import { expect, test } from "vitest";

import { MessageWindow } from "../src/messageWindow.js";
import type { Message } from "../src/index.js";

function message(seq: number, isMine = false, isImportant = false): Message {
  return {
    conversationId: "si_me_you",
    clientMsgId: `c${seq}`,
    serverMsgId: `s${seq}`,
    seq,
    from: isMine ? "me" : "you",
    isMine,
    type: "TEXT",
    body: `${seq}`,
    isImportant,
    isRecalled: false,
    at: seq,
    state: isMine ? "saved" : "received",
  };
}

function windowOf(after: number, until: number): MessageWindow {
  const window = new MessageWindow(after);
  for (let seq = after + 1; seq <= until; seq += 1) window.append(message(seq));
  return window;
}

test("unread are the others' messages above the read cursor", () => {
  const run = windowOf(0, 4);
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
  const run = windowOf(90, 95);
  run.readTo(50);
  run.setServerUnread({ upTo: 100, read: 50, count: 40 });
  expect(run.unread).toBe(5);
  for (let seq = 96; seq <= 101; seq += 1) run.append(message(seq));
  expect(run.unread).toBe(41);
  run.prepend([message(89, true), message(90)]);
  expect(run.unread).toBe(41);
  run.readTo(101);
  expect(run.unread).toBe(0);
});

test("what speaks to us is counted once, also if it was told before it came", () => {
  const run = windowOf(90, 95);
  run.readTo(50);
  run.setServerMentions({ upTo: 98, read: 50, count: 3 });
  expect(run.mentions).toBe(0);
  run.append(message(96, false, true));
  run.append(message(97));
  run.append(message(98, false, true));
  expect(run.mentions).toBe(3);
  run.append(message(99, false, true));
  expect(run.mentions).toBe(4);
  run.setServerMentions({ upTo: 98, read: 50, count: 3 });
  expect(run.mentions).toBe(4);
});

test("letting go of the oldest changes no count", () => {
  const run = windowOf(0, 20);
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
  const run = windowOf(0, 20);
  run.cutBefore(15);
  expect([run.first, run.last, run.unread]).toEqual([15, 20, 6]);
  run.cutBefore(31);
  expect([run.first, run.last, run.unread]).toEqual([31, 30, 0]);
});

test("a gap is a mistake of ours and never passes silently", () => {
  expect(() => windowOf(0, 2).append(message(4))).toThrow("a gap");
  expect(() => windowOf(5, 6).prepend([message(3)])).toThrow("a gap");
});
