// @vitest-environment happy-dom
import { act, createElement as h, memo, StrictMode, useSyncExternalStore } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Target } from "../src/index.js";
import { World } from "./fake.js";

(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

let world: World;
let root: Root;
let page: HTMLElement;
const complaints: string[] = [];
/** How often each component was rendered. */
const renders: Record<string, number> = {};
const counted = (name: string) => void (renders[name] = (renders[name] ?? 0) + 1);

/** As an app would write it. */
function useClient<Value>(read: () => Value): Value {
  return useSyncExternalStore(world.client.subscribe, read);
}

const Line = memo(({ id }: { id: string }) => {
  const line = useClient(() => world.client.conversation(id));
  counted(`line ${id}`);
  return h("li", {}, `${line?.name}: ${line?.lastMessage?.body} (${line?.unread})`);
});

function List() {
  const lines = useClient(() => world.client.conversations());
  counted("list");
  return h(
    "ul",
    {},
    lines.map(({ id }) => h(Line, { key: id, id })),
  );
}

function Chat({ target, name }: { target: Target; name: string }) {
  const messages = useClient(() => world.client.messages(target));
  counted(name);
  return h("p", { id: name }, messages.map(({ body, state }) => `${body} ${state}`).join(", "));
}

function Person({ id }: { id: string }) {
  const user = useClient(() => world.client.people.known(id));
  counted("person");
  return h("b", {}, user?.nickname ?? "?");
}

function push(from: string, seq: number) {
  return {
    type: "SINGLE_CHAT",
    from,
    to: "me",
    conversationId: `si_me_${from}`,
    clientMsgId: `${from}-${seq}`,
    serverMsgId: `s-${from}-${seq}`,
    msgSeq: String(seq),
    msgType: "TEXT",
    body: `${from} ${seq}`,
    ts: from === "you" ? 100 + seq : seq,
  };
}

const text = (id: string) => page.querySelector(`#${id}`)?.textContent;

/** The components rendered during an action. */
async function rendersOf(happening: () => unknown): Promise<Record<string, number>> {
  for (const name of Object.keys(renders)) delete renders[name];
  await act(async () => {
    await happening();
    await world.clock.pass(0);
  });
  return { ...renders };
}

const App = () =>
  h(
    "main",
    {},
    h(List),
    h(Chat, { target: { to: "you" }, name: "you" }),
    h(Chat, { target: "si_me_zoe", name: "zoe" }),
    h(Person, { id: "you" }),
  );

beforeEach(async () => {
  complaints.length = 0;
  vi.spyOn(console, "error").mockImplementation(
    (...words: unknown[]) => void complaints.push(words.join(" ")),
  );
  world = new World();
  page = document.body.appendChild(document.createElement("div"));
  root = createRoot(page);
  await act(async () => root.render(h(App)));
  await act(async () => {
    await world.online();
    world.socket.say(push("you", 1));
    world.socket.say(push("zoe", 1));
    await world.clock.pass(0);
  });
});

afterEach(async () => {
  await act(async () => root.unmount());
  world.client.close();
  page.remove();
  vi.restoreAllMocks();
  // React reports a snapshot that is new at every read, and aborts an endless loop.
  expect(complaints).toEqual([]);
});

test("a page shows what is there, and renders only what changed", async () => {
  expect(page.querySelector("ul")?.textContent).toBe("you: you 1 (1)zoe: zoe 1 (1)");
  expect(text("you")).toBe("you 1 received");
  // The order of the list stays: the list is rendered for the new summary, but not Zoe's row.
  expect(await rendersOf(() => world.socket.say(push("you", 2)))).toEqual({
    list: 1,
    "line si_me_you": 1,
    you: 1,
  });
  expect(text("you")).toBe("you 1 received, you 2 received");
  expect(await rendersOf(() => world.client.markRead({ to: "you" }))).toEqual({
    list: 1,
    "line si_me_you": 1,
  });
  expect(page.querySelector("ul")?.textContent).toBe("you: you 2 (0)zoe: zoe 1 (1)");
});

test("what changes nothing renders nothing", async () => {
  expect(await rendersOf(() => world.socket.say(push("you", 1)))).toEqual({});
  expect(await rendersOf(() => world.client.refresh())).toEqual({});
  expect(await rendersOf(() => world.socket.say({ type: "PING" }))).toEqual({});
  expect(await rendersOf(() => world.client.markRead("si_me_you"))).not.toEqual({});
  expect(await rendersOf(() => world.client.markRead("si_me_you"))).toEqual({});
});

test("many at the same moment are one render", async () => {
  const burst = () => {
    for (let seq = 2; seq <= 50; seq += 1) world.socket.say(push("you", seq));
  };
  expect(await rendersOf(burst)).toEqual({ list: 1, "line si_me_you": 1, you: 1 });
  expect(text("you")?.split(", ").length).toBe(50);
});

test("an own message is rendered at each step of its way", async () => {
  const sent = await rendersOf(() => world.client.send({ to: "you" }, "Hello"));
  expect(sent).toEqual({ list: 1, "line si_me_you": 1, you: 1 });
  expect(text("you")).toBe("you 1 received, Hello sending");
  const { clientMsgId } = world.client.messages({ to: "you" }).at(-1) ?? {};
  const ack = {
    type: "ACK",
    ackType: "saved",
    conversationId: "si_me_you",
    clientMsgId,
    serverMsgId: "s9",
    msgSeq: "2",
    ts: 200,
  };
  expect(await rendersOf(() => world.socket.say(ack))).toEqual({ list: 1, "line si_me_you": 1, you: 1 });
  expect(text("you")).toBe("you 1 received, Hello saved");
});

test("a person is rendered when they are known and when they change", async () => {
  const answer = { id: "you", user_id: "you", nickname: "Yoko", avatar: "", extra: "", created_at: 1 };
  world.answers["/user/info"] = () => answer;
  expect(page.querySelector("b")?.textContent).toBe("?");
  expect(await rendersOf(() => world.client.people.get("you"))).toEqual({ person: 1 });
  expect(page.querySelector("b")?.textContent).toBe("Yoko");
  expect(await rendersOf(() => world.client.people.get("you"))).toEqual({});
  answer.nickname = "Yoko O.";
  expect(await rendersOf(() => world.client.people.get("you"))).toEqual({ person: 1 });
});

test("signing out empties the page", async () => {
  await rendersOf(() => world.client.close());
  expect([page.querySelector("ul")?.textContent, text("you")]).toEqual(["", ""]);
});

test("strict mode and a second mount find the same", async () => {
  const second = createRoot(document.createElement("div"));
  await act(async () => second.render(h(StrictMode, {}, h(App))));
  await act(async () => second.unmount());
});
