// One user for sdk/scenarios: reads commands from stdin and writes answers to stdout, one JSON object per line.
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

import { Client, type Message, type Target, type Timing } from "nexo-sdk";
import { FileStore } from "nexo-sdk/file";
import { WebSocket } from "ws";

type Where = { to?: string; groupId?: string };
type Command =
  | ({ do: "send"; count: number; everyMs: number } & Where)
  | ({ do: "read" } & Where)
  | { do: "recall"; body: string }
  | { do: "connect" | "disconnect" | "count" | "report" | "stop" };

const text = { type: "string" } as const;
const { values: given } = parseArgs({
  options: { url: text, user: text, password: text, platform: text, store: text, timing: text },
});

const client = new Client({
  url: given.url as string,
  webSocket: WebSocket,
  store: new FileStore(given.store as string),
  platform: Number(given.platform),
  keep: Number.POSITIVE_INFINITY,
  timing: JSON.parse(given.timing ?? "{}") as Partial<Timing>,
});

const print = (answer: object) => process.stdout.write(JSON.stringify(answer) + "\n");
const target = ({ to, groupId }: Where): Target =>
  groupId === undefined ? { to: to as string } : { groupId };
const pause = (ms: number) => new Promise((later) => setTimeout(later, ms));

// Checks the `message` events: each message once, in order.
const emitted = new Map<string, number>();
let twice = 0;
let disordered = 0;
let sent = 0;

function check(message: Message): void {
  if (emitted.has(message.clientMsgId)) twice += 1;
  emitted.set(message.clientMsgId, message.seq);
  if (message.seq === 0) return;
  const last = emitted.get(message.conversationId) ?? 0;
  if (message.seq <= last) disordered += 1;
  emitted.set(message.conversationId, message.seq);
}

async function send(many: number, everyMs: number, where: Where): Promise<void> {
  for (let i = 0; i < many; i += 1) {
    client.send(target(where), `${client.me}-${sent}`);
    sent += 1;
    if (everyMs > 0) await pause(everyMs);
  }
}

/** A restarted process continues the numbers of the killed one. */
function resumeCount(): void {
  const numbers = client
    .conversations()
    .flatMap(({ id }) => client.messages(id))
    .filter(({ isMine, body }) => isMine && body !== "")
    .map(({ body }) => Number(body.split("-").at(-1)) + 1);
  sent = Math.max(sent, ...numbers);
}

async function recall(body: string): Promise<void> {
  const all = client.conversations().flatMap(({ id }) => client.messages(id));
  const message = all.find((one) => one.isMine && one.body === body) as Message;
  await client.recall((await client.saved(message)).serverMsgId);
}

function count() {
  const counts = client.conversations().map(({ id, lastSeq, unread }) => {
    const unsent = client.messages(id).filter(({ seq }) => seq === 0).length;
    return [id, { last: lastSeq, unread, unsent }];
  });
  return { say: "count", conversations: Object.fromEntries(counts) };
}

async function report() {
  const conversations = [];
  for (const { id } of client.conversations()) {
    while ((await client.loadOlder(id, 500)).length > 0);
    const list = client.messages(id);
    const messages = list
      .filter(({ seq }) => seq > 0)
      .map(({ serverMsgId, seq, from, body, isRecalled, state }) => ({
        id: serverMsgId,
        seq,
        from,
        body,
        isRecalled,
        state,
      }));
    const unread = client.conversation(id)?.unread;
    conversations.push({ id, unread, unsent: list.length - messages.length, messages });
  }
  return { say: "report", twice, disordered, conversations };
}

async function run(command: Command): Promise<void> {
  switch (command.do) {
    case "send":
      return void send(command.count, command.everyMs, command);
    case "read":
      return client.markRead(target(command));
    case "recall":
      await recall(command.body);
      return void print({ say: "done" });
    case "count":
      return void print(count());
    case "report":
      return void print(await report());
    case "connect":
      return client.connect();
    case "disconnect":
      return client.disconnect();
    case "stop":
      process.exit(0);
  }
}

client.on("message", check);
client.on("removed", ({ clientMsgId }) => emitted.delete(clientMsgId)); // it may come again as a message
client.on("state", ({ name }) => {
  if (name === "online") resumeCount();
  print({ say: "state", name });
});
client.on("problem", (error) => console.error(`${given.user}: ${error.message}`));

if (!(await client.resume())) await client.login(given.user as string, given.password as string);

// One after the other, so that answers come in order.
let before = Promise.resolve();
createInterface({ input: process.stdin }).on("line", (line) => {
  before = before.then(() => run(JSON.parse(line) as Command)).catch((error) => {
    console.error(`${given.user}: ${line}: ${error}`);
    process.exit(1);
  });
});
