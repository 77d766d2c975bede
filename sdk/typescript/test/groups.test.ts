import { afterAll, beforeAll, expect, test } from "vitest";

import { type Change, type Client, type Group, MemoryStore } from "../src/index.js";
import { Server, until } from "./server.js";

let server: Server;
let alice: Client;
let bob: Client;
let carol: Client;
let group: Group;
const changes: Change[] = [];

beforeAll(async () => {
  server = await Server.start();
  alice = await server.person("alice");
  bob = await server.person("bob");
  carol = await server.person("carol");
  bob.on("change", (change) => changes.push(change));
  group = await alice.groups.create({ name: "Chess", memberIds: ["bob"] });
});

afterAll(() => server.stop());

const kinds = () => changes.map(({ kind }) => kind);

test("whoever is brought in sees the group and hears of it", async () => {
  await until(() => bob.conversation(group.conversationId)?.name === "Chess", "its name");
  expect(kinds()).toEqual(["joined"]);
  expect((await bob.groups.get(group.groupId)).myRole).toBe("member");
});

test("messages, mentions and answers", async () => {
  const sent = alice.send({ groupId: group.groupId }, "Hello @bob", { mentions: ["bob"] });
  const first = await alice.saved(sent);
  const line = () => bob.conversation({ groupId: group.groupId });
  await until(() => line()?.mentionUnread === 1, "it speaks to bob");
  const answer = bob.send({ groupId: group.groupId }, "Yes?", { replyTo: first.serverMsgId });
  await bob.saved(answer);
  expect(line()).toMatchObject({ unread: 0, mentionUnread: 0 });
  const last = () => alice.messages({ groupId: group.groupId }).at(-1);
  await until(() => last()?.body === "Yes?", "the answer");
  expect(last()).toMatchObject({ replyTo: first.serverMsgId, isImportant: true });
});

test("how far everybody has come can be asked", async () => {
  const state = await alice.groups.readState(group.groupId);
  expect(state?.map(({ userId }) => userId)).toEqual(["alice", "bob"]);
  // Bob replied, which marks earlier messages as read.
  expect(state?.[1]).toMatchObject({ fromSeq: 1, readSeq: 2 });
});

test("being added while away is told, whatever one may read there and whatever happened since", async () => {
  const store = new MemoryStore();
  const told: Change[] = [];
  const arrive = async (given?: MemoryStore) => {
    told.length = 0;
    const client = server.client(given && { store: given });
    client.on("change", (change) => told.push(change));
    await client.login("dave", "test-password-1");
    await client.ready();
    return client;
  };
  await bob.register({ userId: "dave", nickname: "dave", password: "test-password-1" });
  const joins = () => told.filter(({ userIds }) => userIds.includes("dave")).map((one) => `${one.kind} ${one.conversationId}`);
  const archive = async (): Promise<Group> => {
    const made = await alice.groups.create({ name: "Archive", history: "all" });
    for (const text of ["one", "two", "three"]) await alice.saved(alice.send(made.conversationId, text));
    await alice.groups.invite(made.groupId, ["dave"]);
    return made;
  };
  const first = await archive();
  for (let round = 0; round < 205; round += 1) await alice.groups.muteAll(first.groupId, round % 2 === 0);
  const dave = await arrive(store); // for the first time
  expect(joins()).toEqual([`joined ${first.conversationId}`]);
  expect(told[0]?.by).toBe("alice");
  dave.close();
  await until(async () => !(await alice.people.presence(["dave"]))[0]!.isOnline, "dave is away");
  (await arrive(store)).close();
  expect(joins()).toEqual([]); // once
  const second = await archive();
  const other = await arrive(); // another device, which was told of nothing
  expect(joins()).toEqual([`joined ${second.conversationId}`]);
  const again = await arrive(store);
  expect(joins()).toEqual([`joined ${second.conversationId}`]); // each device
  again.close();
  other.close();
});

test("a newcomer sees messages from the join on", async () => {
  await alice.groups.join({ groupId: group.groupId }).catch(() => {});
  expect(await alice.groups.invite(group.groupId, ["carol", "bob"])).toEqual(["carol"]);
  await until(() => carol.conversation({ groupId: group.groupId }), "carol is in");
  await alice.saved(alice.send({ groupId: group.groupId }, "Welcome"));
  const seen = () => carol.messages({ groupId: group.groupId }).map(({ body }) => body);
  await until(() => seen().includes("Welcome"), "welcome");
  expect(await carol.loadOlder({ groupId: group.groupId })).toEqual([]);
  expect(seen()).toEqual(["Welcome"]);
});

test("changes come in order, each once", async () => {
  const id = group.groupId;
  await alice.groups.update(id, { name: "Go" });
  await alice.groups.setRole(id, "carol", "admin");
  await alice.groups.muteAll(id, true);
  await alice.groups.muteAll(id, false);
  await alice.groups.mute(id, "bob", 60);
  const refused = bob.send({ groupId: id }, "?");
  await expect(bob.saved(refused)).rejects.toMatchObject({ reason: "group_speak_muted" });
  bob.discard(refused.clientMsgId);
  await alice.groups.mute(id, "bob", 0);
  await until(() => bob.conversation({ groupId: id })?.name === "Go", "its new name");
  const wanted = ["joined", "joined", "updated", "role", "allMuted", "allMuted", "muted", "muted"];
  await until(() => kinds().length === wanted.length, "all changes");
  expect(kinds()).toEqual(wanted);
  const { list, total } = await bob.groups.members(id);
  expect(total).toBe(3);
  expect(list.find(({ userId }) => userId === "carol")?.role).toBe("admin");
});

test("names are camelCase, booleans say is or has, and what is one of a few things is a word", async () => {
  const { groupId, conversationId } = group;
  const me = await bob.people.me();
  expect(me.updatedAt).toBeGreaterThanOrEqual(me.createdAt);
  const mine = await bob.groups.get(groupId);
  const { list } = await bob.groups.members(groupId);
  const [page] = (await bob.groups.joined()).list;
  expect([mine.myRole, page?.myRole, mine.isEnded]).toEqual(["member", "member", false]);
  expect(list.map(({ userId, role }) => `${userId} ${role}`)).toContain("carol admin");
  const told = changes.filter(({ kind }) => kind === "role" || kind === "allMuted");
  expect(told.map(({ role, isMuted }) => role ?? isMuted)).toEqual(["admin", true, false]);
  const [presence] = await bob.people.presence(["alice"]);
  const all = [me, mine, page, ...list, ...changes, presence, bob.conversation(conversationId), ...bob.messages(conversationId)];
  for (const one of all) {
    for (const [name, value] of Object.entries(one ?? {})) {
      expect(name).toMatch(/^[a-z][A-Za-z0-9]*$/);
      if (typeof value === "boolean") expect(name).toMatch(/^(is|has)[A-Z]/);
      if (["kind", "role", "myRole", "state", "receive"].includes(name)) expect(value).toMatch(/^[a-z][A-Za-z]*$/);
    }
  }
});

test("asking to join, and being let in", async () => {
  const club = await alice.groups.create({ name: "Club", joinType: "approval" });
  const asked: string[] = [];
  alice.on("joinRequest", ({ requestId }) => asked.push(requestId));
  const decided: boolean[] = [];
  bob.on("joinDecision", ({ isAccepted }) => decided.push(isAccepted));
  const answer = await bob.groups.join({ code: club.groupCode as string }, "me too");
  expect(answer.status).toBe("pending");
  await until(() => asked.length === 1, "asked");
  expect((await alice.groups.requests(club.groupId)).list).toMatchObject([{ message: "me too" }]);
  await alice.groups.decide(asked[0] as string, true);
  await until(() => decided.length === 1, "decided");
  await until(() => bob.conversation({ groupId: club.groupId }), "in");
});

test("who leaves keeps what was said, who comes back sees what is new", async () => {
  const id = group.groupId;
  await bob.groups.leave(id);
  await until(() => bob.conversation({ groupId: id })?.isActive === false, "out");
  const before = bob.messages({ groupId: id }).length;
  await alice.saved(alice.send({ groupId: id }, "without bob"));
  expect(bob.messages({ groupId: id }).length).toBe(before);
  await alice.groups.invite(id, ["bob"]);
  await until(() => bob.conversation({ groupId: id })?.isActive, "in again");
  await alice.saved(alice.send({ groupId: id }, "bob is back"));
  await until(() => bob.messages({ groupId: id }).at(-1)?.body === "bob is back", "new");
  expect(bob.messages({ groupId: id }).map(({ body }) => body)).toEqual(["bob is back"]);
  expect(bob.conversation({ groupId: id })?.unread).toBe(1);
});

test("a conversation is hidden until something is said", async () => {
  const target = { groupId: group.groupId };
  const isListed = () => bob.conversations().some(({ id }) => id === group.conversationId);
  await alice.saved(alice.send(target, "before"));
  await until(() => bob.messages(target).at(-1)?.body === "before", "the message");
  await bob.hide(target);
  expect(isListed()).toBe(false);
  expect(bob.conversation(target)).toMatchObject({ isHidden: true, isEnded: false });
  bob.refresh();
  await alice.saved(alice.send(target, "after"));
  await until(isListed, "it is back");
  const seen = await bob.groups.setMemberInfo(group.groupId, { groupNickname: "Bobby" });
  expect(seen).toMatchObject({ userId: "bob", groupNickname: "Bobby" });
});

test("transfer, kick, dissolve", async () => {
  const id = group.groupId;
  await alice.groups.transfer(id, "carol");
  await expect(alice.groups.kick(id, "carol")).rejects.toMatchObject({ reason: "not_group_admin" });
  await carol.groups.kick(id, "bob");
  await until(() => bob.conversation({ groupId: id })?.isActive === false, "out");
  await carol.groups.dissolve(id);
  await until(() => alice.conversation({ groupId: id })?.isActive === false, "over");
});

test("what has ended or was hidden is read by whoever had it, and has its name", async () => {
  const over = await alice.groups.create({ name: "Rally", memberIds: ["bob"] });
  const left = await alice.groups.create({ name: "Attic", memberIds: ["bob"] });
  for (const { groupId } of [over, left]) {
    for (const text of ["one", "two", "three"]) await alice.saved(alice.send({ groupId }, text));
    await until(() => bob.messages({ groupId }).length === 3, "all of them");
    bob.markRead({ groupId });
  }
  await alice.groups.dissolve(over.groupId);
  await bob.groups.leave(left.groupId);
  await until(() => bob.conversation({ groupId: left.groupId })?.isActive === false, "out");
  await bob.hide({ groupId: left.groupId });

  const later = server.client({ platform: 2 });
  await later.login("bob", "test-password-1");
  await later.ready();
  for (const { conversationId: id, name } of [over, left]) {
    expect(later.conversations().some((line) => line.id === id)).toBe(false);
    await later.loadName(id);
    expect(later.conversation(id)).toMatchObject({ name, isActive: false });
    while ((await later.loadOlder(id)).length > 0);
    await until(() => later.messages(id).length === 3, "what was said");
  }
  await later.loadName("sg_nothing");
  expect(later.conversation("sg_nothing")).toBeUndefined();
  later.close();
});

test.each(["notify", "none"])("a group whose messages are not pushed: %s", async (strategy) => {
  const quiet = await Server.start({ NEXO_GROUPS__STRATEGY: strategy });
  try {
    const dora = await quiet.person("dora");
    const eve = await quiet.person("eve", { timing: { headsEveryMs: 500 } });
    const { groupId } = await dora.groups.create({ name: "Hall", memberIds: ["eve"] });
    for (let i = 0; i < 5; i += 1) await dora.saved(dora.send({ groupId }, `${i}`));
    await until(() => eve.messages({ groupId }).length === 5, "all of them");
    expect(eve.messages({ groupId }).map(({ body }) => body)).toEqual(["0", "1", "2", "3", "4"]);
    expect(eve.conversation({ groupId })?.unread).toBe(5);
  } finally {
    await quiet.stop();
  }
});

test("a new group has its name from the first moment", async () => {
  const names: string[] = [];
  const off = alice.on("conversation", ({ id, name }) => id === made?.conversationId && names.push(name));
  let made: Group | undefined;
  made = await alice.groups.create({ name: "Rowing", memberIds: ["bob"] });
  await alice.saved(alice.send({ groupId: made.groupId }, "Hello"));
  await until(() => names.length > 0, "its line");
  off();
  expect(new Set(names)).toEqual(new Set(["Rowing"]));
});
