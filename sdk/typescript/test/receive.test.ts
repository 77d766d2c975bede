import { beforeEach, expect, test } from "vitest";

import type { Message } from "../src/index.js";
import { calm, World } from "./fake.js";

const ID = "si_me_you";
let world: World;
let emitted: string[];

function push(seq: number, more: object = {}) {
  return {
    type: "SINGLE_CHAT",
    from: "you",
    to: "me",
    conversationId: ID,
    clientMsgId: `c${seq}`,
    serverMsgId: `s${seq}`,
    msgSeq: String(seq),
    msgType: "TEXT",
    body: `text ${seq}`,
    ts: seq,
    ...more,
  };
}

function info(seq: number) {
  return {
    server_msg_id: `s${seq}`,
    client_msg_id: `c${seq}`,
    conversation_id: ID,
    seq,
    sender_id: "you",
    msg_type: 1,
    content: { text: `text ${seq}` },
    send_at: seq,
  };
}

/** Makes the server have this many messages. */
function serve(max: number): void {
  world.answers["/msg/pull"] = (query) => {
    const [begin, end] = [Number(query.get("begin_seq")), Number(query.get("end_seq"))];
    const messages = [];
    for (let seq = begin; seq <= Math.min(end, max); seq += 1) messages.push(info(seq));
    return { messages, max_seq: max, has_more: false };
  };
}

const seqs = () => world.client.messages(ID).map(({ seq }) => seq);
const acks = () => world.socket.of("ACK").map(({ ackType, msgSeq }) => `${ackType} ${msgSeq}`);
const pulls = () => world.asked.filter(({ path }) => path === "/msg/pull").length;

beforeEach(async () => {
  world = new World();
  emitted = [];
  world.client.on("message", ({ body, state }) => emitted.push(`${body} ${state}`));
  world.client.on("update", ({ body, state, seq }) => emitted.push(`${body} ${state} ${seq}`));
  world.client.on("removed", ({ serverMsgId }) => emitted.push(`${serverMsgId} gone`));
  await world.online();
});

test("acknowledges once per window, the highest without a hole before it", async () => {
  for (const seq of [1, 2, 3]) world.socket.say(push(seq));
  expect(acks()).toEqual([]);
  await world.clock.pass(200);
  expect(acks()).toEqual(["delivered 3"]);
  world.socket.say(push(3));
  await world.clock.pass(200);
  expect(acks()).toEqual(["delivered 3"]);
});

test("a hole holds everything back until it is pulled", async () => {
  serve(4);
  world.socket.say(push(1));
  world.socket.say(push(3));
  world.socket.say(push(4));
  expect(seqs()).toEqual([1]);
  await world.clock.pass(149);
  expect(pulls()).toBe(0);
  await world.clock.pass(100);
  expect(pulls()).toBe(1);
  expect(seqs()).toEqual([1, 2, 3, 4]);
  expect(emitted).toEqual([1, 2, 3, 4].map((seq) => `text ${seq} received`));
  await world.clock.pass(200);
  expect(acks().at(-1)).toBe("delivered 4");
});

test("a hole that closes by itself is not pulled", async () => {
  serve(2);
  world.socket.say(push(2));
  await calm();
  world.socket.say(push(1));
  await world.clock.pass(1000);
  expect(pulls()).toBe(0);
  expect(seqs()).toEqual([1, 2]);
});

test("a pull that fails is tried again", async () => {
  world.answers["/msg/pull"] = () => ({ status: 503, reason: "server_busy" });
  world.socket.say(push(1));
  world.socket.say(push(3));
  await world.clock.pass(200);
  expect(seqs()).toEqual([1]);
  serve(3);
  await world.clock.pass(5000);
  expect(seqs()).toEqual([1, 2, 3]);
});

test("read acknowledgements say what the app says, and carry delivered", async () => {
  for (const seq of [1, 2, 3]) world.socket.say(push(seq));
  world.client.markRead(ID, 3);
  expect(world.client.conversation(ID)?.unread).toBe(0);
  await world.clock.pass(200);
  expect(acks()).toEqual(["read 3"]);
});

test("a preview is shown at the end, moves nothing, and is settled by saved", async () => {
  world.socket.say(push(1));
  const { msgSeq: _, ...preview } = push(2, { preview: true });
  world.socket.say(preview);
  world.socket.say(preview);
  await world.clock.pass(1000);
  expect(world.client.messages(ID).map(({ state }) => state)).toEqual(["received", "preview"]);
  expect(acks()).toEqual(["delivered 1"]);
  expect(world.client.conversation(ID)?.unread).toBe(1);
  const saved = { type: "ACK", ackType: "saved", serverMsgId: "s2", clientMsgId: "c2" };
  world.socket.say({ ...saved, conversationId: ID, from: "you", to: "me", msgSeq: "2", ts: 2 });
  expect(seqs()).toEqual([1, 2]);
  world.socket.say(preview);
  world.socket.say(push(2));
  expect(seqs()).toEqual([1, 2]);
  expect(emitted).toEqual(["text 1 received", "text 2 preview", "text 2 received 2"]);
  await world.clock.pass(200);
  expect(acks().at(-1)).toBe("delivered 2");
});

test("a dropped preview is removed", async () => {
  const { msgSeq: _, ...preview } = push(1, { preview: true });
  world.socket.say(preview);
  const dropped = { type: "ACK", ackType: "dropped", serverMsgId: "s1", clientMsgId: "c1" };
  world.socket.say({ ...dropped, conversationId: ID, reason: "internal_error" });
  expect(world.client.messages(ID)).toEqual([]);
  expect(emitted).toEqual(["text 1 preview", "s1 gone"]);
});

test("previews go when the line breaks, and what was saved comes as a message", async () => {
  world.socket.say(push(1));
  const { msgSeq: _, ...preview } = push(2, { preview: true });
  world.socket.say(preview);
  world.socket.end(1006);
  expect(seqs()).toEqual([1]);
  await world.clock.pass(1000);
  world.socket.welcome();
  await calm();
  world.socket.say(push(2));
  expect(seqs()).toEqual([1, 2]);
  expect(emitted).toEqual(["text 1 received", "text 2 preview", "s2 gone", "text 2 received"]);
});

test("saved without a preview is a hole to pull", async () => {
  world.socket.say(push(1));
  serve(2);
  const saved = { type: "ACK", ackType: "saved", serverMsgId: "s2", clientMsgId: "c2" };
  world.socket.say({ ...saved, conversationId: ID, from: "you", to: "me", msgSeq: "2", ts: 2 });
  await world.clock.pass(300);
  expect(seqs()).toEqual([1, 2]);
});

test("accepted comes before saved, and means nothing after it", async () => {
  const { clientMsgId } = world.client.send(ID, "mine");
  const ack = { type: "ACK", conversationId: ID, clientMsgId, serverMsgId: "m", from: "me", to: "you" };
  world.socket.say({ ...ack, ackType: "accepted" });
  expect(world.client.messages(ID)).toMatchObject([{ state: "accepted", serverMsgId: "m", seq: 0 }]);
  world.socket.say({ ...ack, ackType: "saved", msgSeq: "1", ts: 5 });
  world.socket.say({ ...ack, ackType: "accepted" });
  world.socket.say({ ...ack, ackType: "saved", msgSeq: "1", ts: 5 });
  expect(world.client.messages(ID)).toMatchObject([{ state: "saved", seq: 1, at: 5 }]);
  expect(emitted).toEqual(["mine sending", "mine accepted 0", "mine saved 1"]);
});

test("an accepted message that fails in the end is refused", async () => {
  const { clientMsgId } = world.client.send(ID, "mine");
  world.socket.say({ type: "ACK", ackType: "accepted", conversationId: ID, clientMsgId, serverMsgId: "m" });
  world.socket.say({ type: "ERROR", reason: "not_group_member", message: "", clientMsgId, serverMsgId: "m" });
  expect(world.client.messages(ID)).toMatchObject([{ state: "refused", reason: "not_group_member" }]);
});

test("a refused message stays where it was, and what comes later is seen after it", async () => {
  world.socket.say(push(1));
  const { clientMsgId } = world.client.send(ID, "mine");
  world.socket.say({ type: "ERROR", reason: "not_group_member", message: "", clientMsgId });
  expect(world.client.conversation(ID)?.lastMessage?.body).toBe("mine");
  world.socket.say(push(2));
  const bodies = () => world.client.messages(ID).map(({ body }) => body);
  expect(bodies()).toEqual(["text 1", "mine", "text 2"]);
  expect(world.client.conversation(ID)?.lastMessage?.body).toBe("text 2");
  world.client.retry(clientMsgId);
  expect(bodies()).toEqual(["text 1", "text 2", "mine"]);
  expect(world.client.conversation(ID)?.lastMessage?.body).toBe("mine");
});

test("words that the operator replaced are replaced here too", async () => {
  const { clientMsgId } = world.client.send(ID, "a bad word");
  const ack = { type: "ACK", ackType: "saved", conversationId: ID, clientMsgId, serverMsgId: "m" };
  world.socket.say({ ...ack, from: "me", to: "you", msgSeq: "1", ts: 1, body: "a *** word" });
  expect(world.client.messages(ID)[0]?.body).toBe("a *** word");
});

test("also when the message is only accepted", async () => {
  const { clientMsgId } = world.client.send(ID, "a bad word");
  const ack = { type: "ACK", conversationId: ID, clientMsgId, serverMsgId: "m", from: "me", to: "you" };
  world.socket.say({ ...ack, ackType: "accepted", body: "a *** word" });
  expect(world.client.messages(ID)[0]?.body).toBe("a *** word");
  world.socket.say({ ...ack, ackType: "saved", msgSeq: "1", ts: 1 });
  expect(world.client.messages(ID)[0]?.body).toBe("a *** word");
});

test("a recall is applied at once, even before the message or its turn", async () => {
  serve(1);
  const revoked = { type: "MESSAGE_REVOKED", from: "you", conversationId: ID, ts: 9 };
  world.socket.say(push(1));
  world.socket.say({ ...revoked, serverMsgId: "s2", msgSeq: "2", changeSeq: "2" });
  world.socket.say(push(2));
  expect(world.client.messages(ID).map(({ body }: Message) => body)).toEqual(["text 1", ""]);
  const changes: number[] = [];
  world.client.on("change", ({ changeSeq }) => changes.push(changeSeq));
  const change = { conversation_id: ID, operator_id: "you", at: 9, kind: "recalled" };
  world.answers["/conversation/changes"] = () => [
    { ...change, change_seq: 1, server_msg_id: "s1", seq: 1 },
    { ...change, change_seq: 2, server_msg_id: "s2", seq: 2 },
  ];
  await world.clock.pass(500);
  expect(changes).toEqual([1, 2]);
  expect(world.client.messages(ID).every(({ isRecalled: gone }) => gone)).toBe(true);
});

test("heads find the push that was lost last", async () => {
  world.socket.say(push(1));
  serve(2);
  const head = { conversation_id: ID, min_seq: 1, max_seq: 2, delivered_seq: 0, read_seq: 0 };
  const rest = { min_change_seq: 1, change_seq: 0, unread_count: 2, is_active: true, is_pinned: true };
  world.answers["/conversation/heads"] = () => ({
    heads: [{ ...head, ...rest, recv_msg_opt: 1, updated_at: 0 }],
    has_more: false,
  });
  await world.clock.pass(5_000); // it has become quiet
  expect(seqs()).toEqual([1, 2]);
  expect(world.client.conversation(ID)).toMatchObject({ unread: 2, isPinned: true, receive: "silent" });
});

test("receipts that were missed while the line was away are found at the next look", async () => {
  const { clientMsgId } = world.client.send(ID, "mine");
  const ack = { type: "ACK", ackType: "saved", conversationId: ID, clientMsgId, serverMsgId: "m" };
  world.socket.say({ ...ack, from: "me", to: "you", msgSeq: "1", ts: 1 });
  const state = () => world.client.messages(ID)[0]?.state;
  const line = { conversation_id: ID, peer_nickname: "You", mention_unread_count: 0, max_seq: 1, read_seq: 1 };
  world.answers["/conversation/all"] = () => ({
    list: [{ ...line, peer_delivered_seq: 1, peer_read_seq: 1 }],
  });
  world.answers["/conversation/info"] = () => ({ ...line, peer_delivered_seq: 0, peer_read_seq: 0 });
  await world.clock.pass(10_000);
  world.socket.end(1006);
  await world.clock.pass(1_000);
  world.socket.welcome();
  await calm();
  expect(state()).toBe("saved"); // the infos are recent
  const minute = async () => {
    for (let i = 0; i < 3; i += 1) {
      world.socket.say({ type: "PING" });
      await world.clock.pass(20_000);
    }
  };
  const asked = () => world.asked.filter(({ path }) => path === "/conversation/all").length;
  await minute();
  expect(state()).toBe("read");
  const before = asked();
  for (let i = 0; i < 3; i += 1) await minute();
  expect(asked()).toBe(before); // once is enough
});

test("unread on a fresh device is the server's count, though only the end is here", async () => {
  world = new World();
  const head = { conversation_id: ID, min_seq: 1, max_seq: 100, delivered_seq: 100, read_seq: 40 };
  const rest = { min_change_seq: 1, change_seq: 7, unread_count: 50, is_active: true };
  world.answers["/conversation/heads"] = () => ({
    heads: [{ ...head, ...rest, is_pinned: false, recv_msg_opt: 0, updated_at: 0 }],
    has_more: false,
  });
  const line = { conversation_id: ID, peer_nickname: "You", mention_unread_count: 3, max_seq: 100, read_seq: 40 };
  world.answers["/conversation/all"] = () => ({ list: [{ ...line, last_message: info(100) }] });
  serve(100);
  const news: number[] = [];
  world.client.on("message", ({ seq }) => news.push(seq));
  await world.online();
  await world.clock.pass(1000);
  expect(pulls()).toBe(0);
  expect(news).toEqual([]);
  expect(world.client.conversation(ID)).toMatchObject({ name: "You", unread: 50, mentionUnread: 3 });
  world.socket.say(push(101));
  expect(world.client.conversation(ID)?.unread).toBe(51);
  expect(news).toEqual([101]);
  expect((await world.client.loadOlder(ID, 30)).length).toBe(30);
  expect(seqs()).toEqual(Array.from({ length: 32 }, (_, i) => 70 + i));
  expect(world.client.conversation(ID)?.unread).toBe(51);
});

test("what happened long ago is read backwards, up to where one came", async () => {
  const GROUP = "sg_g";
  const change = (change_seq: number) => ({ conversation_id: GROUP, change_seq, kind: "joined", operator_id: "you", at: change_seq });
  world.answers["/conversation/heads"] = () => ({
    heads: [{ conversation_id: GROUP, min_seq: 1, max_seq: 1, delivered_seq: 1, read_seq: 1, min_change_seq: 3, change_seq: 7, unread_count: 0, is_active: true, is_pinned: false, recv_msg_opt: 0, updated_at: 1 }],
    has_more: false,
  });
  world.answers["/conversation/changes"] = (query) => {
    const [since, limit] = [Math.max(Number(query.get("since")), 2), Number(query.get("limit"))];
    return [1, 2, 3, 4, 5, 6, 7].filter((seq) => seq > since).slice(0, limit).map(change);
  };
  world.client.refresh();
  await world.clock.pass(1_000);
  const seqs = async (before?: number, limit?: number) =>
    (await world.client.changes(GROUP, before, limit)).map(({ changeSeq }) => changeSeq);
  expect(await seqs(undefined, 3)).toEqual([5, 6, 7]);
  expect(await seqs(5, 3)).toEqual([3, 4]);
  expect(await seqs(3, 3)).toEqual([]);
});

test("in a group, read means by everybody who was there, and after a reload too", async () => {
  const GROUP = "sg_g";
  const state = () => {
    const message = world.client.messages(GROUP).find(({ isMine }) => isMine);
    return `${message?.state} ${message?.readBy}`;
  };
  const { clientMsgId } = world.client.send(GROUP, "hello");
  const saved = { type: "ACK", ackType: "saved", conversationId: GROUP, clientMsgId, serverMsgId: "m", msgSeq: "1", ts: 1 };
  const read = (from: string, seq = "1") => world.socket.say({ type: "ACK", ackType: "read", conversationId: GROUP, serverMsgId: "m", msgSeq: seq, from });
  world.socket.say(saved);
  expect(state()).toBe("saved 0");
  read("ann");
  expect(state()).toBe("delivered 1"); // the number of members is not loaded yet
  const member = (user_id: string, from_seq: number, read_seq: number) => ({ user_id, from_seq, delivered_seq: read_seq, read_seq });
  const members = [member("me", 1, 1), member("ann", 1, 0), member("ben", 1, 0), member("zoe", 2, 1)];
  world.answers["/group/read_state"] = () => ({ too_large: false, members });
  await world.client.loadReads(GROUP);
  expect(state()).toBe("delivered 1");
  read("ben");
  expect(state()).toBe("read 2"); // zoe joined later
  const change = { type: "GROUP_CHANGED", conversationId: GROUP, changeSeq: "1", from: "me", ts: 1 };
  world.socket.say({ ...change, event: "kicked", userId: "ben" });
  expect(state()).toBe("read 1");
});

test("messages that the server cannot read any more leave places, and nothing is asked for twice", async () => {
  world.answers["/msg/pull"] = (query) => {
    const [begin, end] = [Number(query.get("begin_seq")), Number(query.get("end_seq"))];
    if (begin >= 3 && end <= 4) return { status: 500, reason: "damaged" };
    const readable = [1, 2, 5, 6].filter((seq) => seq >= begin && seq <= end);
    return { messages: readable.map(info), max_seq: 6, has_more: false, damaged: [{ from: 3, to: 4 }] };
  };
  world.socket.say(push(1));
  world.socket.say(push(6));
  await world.clock.pass(1000);
  expect(seqs()).toEqual([1, 2, 3, 4, 5, 6]);
  const damaged = world.client.messages(ID).filter(({ isDamaged }) => isDamaged);
  expect(damaged.map(({ seq, body }) => [seq, body])).toEqual([[3, ""], [4, ""]]);
  expect(emitted.filter((one) => one.endsWith("received")).length).toBe(4);
  expect(acks().at(-1)).toBe("delivered 6");
  const asked = pulls();
  await world.clock.pass(600_000);
  expect(pulls()).toBe(asked);
});

test("a range of nothing but damage ends the asking too", async () => {
  world.answers["/msg/pull"] = () => ({ status: 500, reason: "damaged" });
  world.socket.say(push(1));
  world.socket.say(push(4));
  await world.clock.pass(1000);
  expect(seqs()).toEqual([1, 2, 3, 4]);
  expect(pulls()).toBe(1);
});
