import { beforeEach, expect, test } from "vitest";

import { calm, World } from "./fake.js";

const ID = "si_me_you";
let world: World;

function push(seq: number, id = ID, from = "you") {
  return {
    type: "SINGLE_CHAT",
    from,
    to: "me",
    conversationId: id,
    clientMsgId: `${from}${seq}`,
    serverMsgId: `s-${from}-${seq}`,
    msgSeq: String(seq),
    msgType: "TEXT",
    body: `text ${seq}`,
    ts: seq,
  };
}

/** All snapshots. */
function read() {
  const { client } = world;
  return {
    list: client.conversations(),
    one: client.conversation(ID),
    messages: client.messages(ID),
    other: client.conversation("si_me_zoe"),
    others: client.messages({ to: "zoe" }),
    nobodys: client.messages({ to: "nobody" }),
    person: client.people.known("you"),
    state: client.state,
  };
}

/** The snapshots that changed identity during an action. */
async function changedBy(happening: () => unknown): Promise<string[]> {
  const before = read();
  await happening();
  await calm();
  const after = read();
  return Object.keys(before).filter(
    (key) => before[key as keyof typeof before] !== after[key as keyof typeof after],
  );
}

beforeEach(async () => {
  world = new World({ timing: { pingAfterMs: 1_000_000 } });
  await world.online({ idleTimeoutMs: 3_000_000 });
  for (const seq of [1, 2]) world.socket.say(push(seq));
  world.socket.say(push(1, "si_me_zoe", "zoe"));
  await calm();
});

test("reading twice gives the same, and only what changed is new", async () => {
  expect(await changedBy(() => {})).toEqual([]);
  expect(await changedBy(() => world.socket.say(push(2)))).toEqual([]); // it is here already
  const [first] = world.client.messages(ID);
  expect(await changedBy(() => world.socket.say(push(3)))).toEqual(["list", "one", "messages"]);
  expect(world.client.messages(ID)[0]).toBe(first);
  expect(await changedBy(() => world.client.markRead(ID))).toEqual(["list", "one"]);
  expect(await changedBy(() => world.client.markRead(ID))).toEqual([]);
});

test("comparing with the server changes nothing if nothing has happened", async () => {
  const head = {
    min_seq: 1,
    delivered_seq: 0,
    read_seq: 0,
    min_change_seq: 1,
    change_seq: 0,
    is_active: true,
    is_pinned: false,
    recv_msg_opt: 0,
    updated_at: 2,
  };
  world.answers["/conversation/heads"] = () => ({
    heads: [
      { ...head, conversation_id: ID, max_seq: 2, unread_count: 2 },
      { ...head, conversation_id: "si_me_zoe", max_seq: 1, unread_count: 1 },
    ],
    has_more: false,
  });
  world.answers["/conversation/all"] = () => ({ list: [], has_more: false });
  await world.clock.pass(60_000);
  const looks = () => world.asked.filter(({ path }) => path === "/conversation/heads").length;
  const before = looks();
  expect(await changedBy(() => world.clock.pass(120_000))).toEqual([]);
  expect(looks()).toBeGreaterThan(before);
});

test("a receipt makes new what it is about: the message, its array, its line, the list", async () => {
  const sent = world.client.send(ID, "one");
  const saved = {
    type: "ACK",
    ackType: "saved",
    conversationId: ID,
    clientMsgId: sent.clientMsgId,
    serverMsgId: "s3",
    msgSeq: "3",
    ts: 9,
  };
  expect(await changedBy(() => world.socket.say(saved))).toEqual(["list", "one", "messages"]);
  const before = world.client.messages(ID);
  const receipt = {
    type: "ACK",
    ackType: "read",
    from: "you",
    to: "me",
    conversationId: ID,
    serverMsgId: "s3",
    msgSeq: "3",
  };
  expect(await changedBy(() => world.socket.say(receipt))).toEqual(["list", "one", "messages"]);
  const after = world.client.messages(ID);
  expect(after.map((message, at) => message === before[at])).toEqual([true, true, false]);
  expect([before[2]?.state, after[2]?.state]).toEqual(["saved", "read"]);
  expect(await changedBy(() => world.socket.say(receipt))).toEqual([]);
});

test("loading older ones keeps those that were here", async () => {
  const w = new World();
  const info = (seq: number) => ({
    server_msg_id: `s${seq}`,
    client_msg_id: `c${seq}`,
    conversation_id: ID,
    seq,
    sender_id: "you",
    msg_type: 1,
    content: { text: "x" },
    send_at: seq,
  });
  const head = {
    conversation_id: ID,
    min_seq: 1,
    max_seq: 5,
    delivered_seq: 5,
    read_seq: 5,
    min_change_seq: 1,
    change_seq: 0,
    unread_count: 0,
    is_active: true,
    is_pinned: false,
    recv_msg_opt: 0,
    updated_at: 5,
  };
  w.answers["/conversation/heads"] = () => ({ heads: [head], has_more: false });
  w.answers["/conversation/all"] = () => ({
    list: [{ conversation_id: ID, mention_unread_count: 0, max_seq: 5, read_seq: 5, last_message: info(5) }],
  });
  w.answers["/msg/pull"] = (query) => {
    const [begin, end] = [Number(query.get("begin_seq")), Number(query.get("end_seq"))];
    return {
      messages: Array.from({ length: end - begin + 1 }, (_, at) => info(begin + at)),
      max_seq: 5,
      has_more: false,
    };
  };
  await w.online();
  const before = w.client.messages(ID);
  await w.client.loadOlder(ID, 2);
  const after = w.client.messages(ID);
  expect(after.map(({ seq }) => seq)).toEqual([3, 4, 5]);
  expect(after.at(-1)).toBe(before.at(-1));
  expect(before.map(({ seq }) => seq)).toEqual([5]);
});

test("a snapshot cannot be changed, and stays as it was", async () => {
  const messages = world.client.messages(ID);
  expect(() => (messages as unknown[]).push("x")).toThrow(TypeError);
  expect(() => (world.client.conversations() as unknown[]).reverse()).toThrow(TypeError);
  expect(() => Object.assign(world.client.conversation(ID) as object, { unread: 9 })).toThrow(TypeError);
  world.socket.say(push(3));
  expect(messages.length).toBe(2);
});

test("whoever subscribes is called once for all that happens at a moment, until they leave", async () => {
  let calls = 0;
  const off = world.client.subscribe(() => (calls += 1));
  for (let seq = 3; seq < 20; seq += 1) world.socket.say(push(seq));
  await Promise.resolve();
  expect(calls).toBe(1);
  await calm();
  expect(calls).toBeLessThanOrEqual(2); // summaries are emitted a microtask after the messages
  off();
  const before = calls;
  world.socket.say(push(20));
  await calm();
  expect(calls).toBe(before);
});

test("people are the same until they change, and forgotten with the sign-in", async () => {
  const user = { id: "you", user_id: "you", nickname: "Yoko", avatar: "", extra: "", created_at: 1 };
  world.answers["/user/info"] = () => ({ ...user });
  world.answers["/auth/logout"] = () => ({});
  expect(await changedBy(() => world.client.people.get("you"))).toEqual(["person"]);
  expect(await world.client.people.get("you")).toBe(world.client.people.known("you"));
  expect(await changedBy(() => world.client.people.get("you"))).toEqual([]);
  user.avatar = "y.png";
  expect(await changedBy(() => world.client.people.get("you"))).toEqual(["person"]);
  await world.client.logout();
  expect(world.client.people.known("you")).toBe(undefined);
  expect(world.client.conversations()).toEqual([]);
});
