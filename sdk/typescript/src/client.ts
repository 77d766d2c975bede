import { toCamel, toSnake } from "./casing.js";
import { type Clock, wallClock } from "./clock.js";
import { codes, type Reason } from "./codes.js";
import { Desk } from "./desk.js";
import { Emitter, type Off } from "./events.js";
import { Groups } from "./groups.js";
import { Http, type Reply, type RequestBody } from "./http.js";
import { Link } from "./link.js";
import type { ClientOptions } from "./options.js";
import { watchPage } from "./page.js";
import { KnownPeople, type NewUser, People, type User } from "./people.js";
import { Refused } from "./refusal.js";
import { sameArray, Subscribers } from "./snapshot.js";
import type { SocketClass } from "./socket.js";
import { defaultStore, ForgivingStore, type Store } from "./storage.js";
import { defaultTiming, type Timing } from "./timing.js";
import { type Grant, SignIn } from "./tokens.js";
import {
  addressOf,
  type Change,
  type Content,
  type ConversationLine,
  conversationOf,
  type Events,
  type Message,
  type Receive,
  type SendOptions,
  type State,
  type Target,
} from "./types.js";

const KEEP = 5_000;
const NO_SOCKET =
  "there is no WebSocket here: in Node before version 22 install `ws` and give its class, " +
  "`new Client({ url, webSocket: WebSocket })`";
const NONE: readonly never[] = Object.freeze([]);

/** A person's way to the server: one per person and device. */
export class Client {
  readonly groups: Groups;
  readonly people: People;
  private readonly events = new Emitter<Events>();
  private readonly clock: Clock;
  private readonly timing: Timing;
  private readonly store: Store;
  private readonly http: Http;
  private readonly signIn: SignIn;
  private readonly link: Link;
  private readonly keep: number;
  private readonly platform: number;
  private desk: Desk | undefined;
  private now: State = { name: "offline" };
  private unwatch: Off | undefined;
  private listed: readonly ConversationLine[] = NONE;
  private readonly subscribers = new Subscribers();
  private readonly knownPeople = new KnownPeople(() => this.subscribers.notify());
  /** Those who wait for a message to be saved, and how to tell them that nobody sends it now. */
  private readonly waiting = new Set<(reason: Reason) => void>();

  constructor(options: ClientOptions) {
    const url = options.url.replace(/\/+$/, "");
    if (!/^https?:\/\//.test(url)) {
      throw new TypeError(`url: an address such as https://chat.example.com, not "${options.url}"`);
    }
    this.clock = options.clock ?? wallClock;
    this.timing = { ...defaultTiming, ...options.timing };
    this.keep = options.keep ?? KEEP;
    this.platform = options.platform ?? 5;
    const problem = (error: Error) => this.events.emit("problem", error);
    this.store = new ForgivingStore(options.store ?? defaultStore(), problem);
    const { httpTimeoutMs, refreshTimeoutMs } = this.timing;
    const refresh = (refresh_token: string) =>
      this.http.postOpenly<Grant>("/auth/refresh", { refresh_token }, refreshTimeoutMs);
    this.signIn = new SignIn(this.clock, this.store, refresh);
    const fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.http = new Http(url, fetch, this.clock, httpTimeoutMs, this.signIn);
    this.groups = new Groups(this.http, (group) => this.desk?.learnGroup(group));
    this.people = new People(this.http, this.knownPeople);
    this.link = this.linkTo(url, options.webSocket);
    this.signIn.onRenewed = (token) => void this.link.send({ type: "REAUTH", token });
    this.signIn.onEnded = (reason) => this.ended(reason);
    this.events.on("person", (person) => this.knownPeople.hear(person));
    for (const name of ["state", "message", "update", "removed", "conversation"] as const) {
      this.events.on(name, () => this.subscribers.notify());
    }
  }

  on<Name extends keyof Events>(name: Name, hear: (event: Events[Name]) => void): Off {
    return this.events.on(name, hear);
  }

  /**
   * Calls after anything changed that `state`, `conversations`, `conversation`, `messages` or `people.known`
   * read; once for all that changed at the same moment. A function of its own, so it can be passed on:
   * `useSyncExternalStore(client.subscribe, () => client.messages(target))`.
   */
  readonly subscribe = (listener: () => void): Off => this.subscribers.add(listener);

  get state(): State {
    return this.now;
  }

  /** Who is signed in. */
  get me(): string | undefined {
    return this.signIn.userId;
  }

  /** Makes an account; signing in is another step. */
  async register(user: NewUser): Promise<User> {
    return toCamel(await this.http.postOpenly<object>("/user/register", toSnake(user)));
  }

  /** Signs in and connects. */
  async login(userId: string, password: string): Promise<void> {
    const body = { user_id: userId, password, platform_id: this.platform };
    const grant = await this.http.postOpenly<Grant>("/auth/login", body);
    this.leave();
    await this.signIn.take(grant);
    await this.enter();
  }

  /** Goes on with the sign-in of an earlier run and connects; false if there is none. */
  async resume(): Promise<boolean> {
    if (this.desk !== undefined && this.me !== undefined) return true;
    this.leave(); // of a sign-in that has ended
    if (!(await this.signIn.resume())) return false;
    await this.enter();
    return true;
  }

  /** Ends the sign-in, here and on the server, and forgets what was not sent. */
  async logout(): Promise<void> {
    const me = this.me;
    const told = me === undefined ? undefined : this.http.post("/auth/logout");
    await told?.catch(() => {}); // a server that cannot be reached does not keep us signed in
    this.leave({ name: "signedOut", reason: "logout" });
    this.signIn.end();
    await this.signIn.forgotten(); // whoever loads the page again finds nobody signed in
    for (const [key] of await this.store.list(`outbox/${me}/`)) await this.store.delete(key);
  }

  /** Every sign-in ends, this one too. */
  async changePassword(oldPassword: string, newPassword: string): Promise<void> {
    const body = { old_password: oldPassword, new_password: newPassword };
    await this.http.post("/user/change_password", body);
  }

  /** Sets a password with a code from the operator, which works once. Every sign-in ends. */
  async resetPassword(userId: string, code: string, newPassword: string): Promise<void> {
    const body = { user_id: userId, code, new_password: newPassword };
    await this.http.postOpenly("/user/reset_password", body);
  }

  /**
   * The access token, refreshed if it has expired: for what speaks to the server without this client.
   * It lives for minutes, so ask for it each time.
   */
  token(): Promise<string> {
    return this.signIn.token();
  }

  /**
   * Asks for anything the SDK has no method for, with the token if somebody is signed in. The names are those
   * of docs/http.md, and the answer is the whole envelope. For GET and DELETE `body` becomes the query.
   */
  request<Data = unknown>(method: string, path: string, body?: RequestBody): Promise<Reply<Data>> {
    return this.http.request<Data>(method, path, body, this.me !== undefined);
  }

  /** Connects again after `disconnect`. */
  connect(): void {
    if (this.desk === undefined || this.me === undefined) throw nobody();
    this.link.start();
  }

  /** Ends the connection; what is said meanwhile waits. */
  disconnect(): void {
    this.link.stop({ name: "offline" });
  }

  /**
   * Resolves when the client is connected and knows the conversations. `login` and `resume` do not wait for that,
   * since an app can show what it has meanwhile. Rejects if the sign-in ends first.
   */
  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (state: State) => {
        const isOver = this.desk === undefined || state.name === "kicked" || state.name === "signedOut";
        if (state.name !== "online" && !isOver) return;
        off();
        if (!isOver) return resolve();
        const told = state.name === "signedOut" ? state.reason : state.name;
        reject(told in codes ? new Refused(told as Reason) : nobody());
      };
      const off = this.on("state", (state) => queueMicrotask(() => look(state)));
      look(this.now);
    });
  }

  /** Compares with the server now: somebody looks, or the network is back. */
  refresh(): void {
    this.link.hurry();
    this.desk?.sync.askHeads();
  }

  /**
   * Asks the server whether it is there: true once anything is heard, false if the connection ends before,
   * or if there is none. It has no time limit: how long is too long, the app knows.
   */
  ping(): Promise<boolean> {
    return this.link.ping();
  }

  /** Gives up a connection on which nobody answers, and makes a new one. */
  reconnect(): void {
    this.link.reconnect();
  }

  /** Lets go of everything, for good. */
  close(): void {
    this.leave({ name: "offline" });
    this.signIn.stop();
  }

  /**
   * The list: pinned ones first, then the latest; what has ended or was hidden is not in it. The same
   * array until it changes.
   */
  conversations(): readonly ConversationLine[] {
    const all = [...(this.desk?.inbox.conversations.values() ?? [])];
    const lines = all.filter((one) => one.isListed).map((one) => one.line());
    const rank = (line: ConversationLine) => Number(line.pinned);
    lines.sort((a, b) => rank(b) - rank(a) || b.updatedAt - a.updatedAt);
    this.listed = sameArray(this.listed, lines);
    return this.listed;
  }

  /** One line of the list. The same object until it changes. */
  conversation(target: Target): ConversationLine | undefined {
    return this.desk?.find(target)?.line();
  }

  /**
   * The messages that are on this device, in order, and those without a place at the end. The same array
   * until one comes, goes or changes; and each message the same object until it changes.
   */
  messages(target: Target): readonly Message[] {
    return this.desk?.find(target)?.list() ?? NONE;
  }

  /** Says something. It is on its way until it is saved or refused, whatever happens between. */
  send(target: Target, content: string | Content, options: SendOptions = {}): Message {
    return this.open().send(target, typeof content === "string" ? { body: content } : content, options);
  }

  /** Resolves when a message that was sent is saved; rejects if it is refused, or the sign-in is left. */
  saved(message: Message): Promise<Message> {
    return new Promise((resolve, reject) => {
      const look = (now: Message) => {
        if (now.clientMsgId !== message.clientMsgId || !now.mine) return;
        if (now.state === "refused") return giveUp(now.reason as Reason);
        if (now.seq === 0) return;
        done();
        resolve(now);
      };
      const giveUp = (reason: Reason) => {
        done();
        reject(new Refused(reason));
      };
      const off = this.on("update", look);
      const done = () => {
        off();
        this.waiting.delete(giveUp);
      };
      this.waiting.add(giveUp);
      const known = this.messages(message.conversationId);
      look(known.find((one) => one.mine && one.clientMsgId === message.clientMsgId) ?? message);
      if (this.me === undefined) giveUp("missing_token");
    });
  }

  /** Tries a refused message again. */
  retry(clientMsgId: string): void {
    this.open().retry(clientMsgId);
  }

  /** Forgets a refused message. */
  discard(clientMsgId: string): void {
    this.open().discard(clientMsgId);
  }

  /** You have read up to this place, or everything that is here. */
  markRead(target: Target, seq?: number): void {
    this.open().markRead(target, seq);
  }

  /** Brings older messages; none if there are none. */
  loadOlder(target: Target, limit = 50): Promise<Message[]> {
    return this.open().loadOlder(target, limit);
  }

  /**
   * Brings the name, the picture and the number of members of a conversation that is not in the list; for those
   * in the list they come by themselves. Call it when somebody looks at one that has ended or was hidden.
   */
  async loadName(target: Target): Promise<void> {
    const desk = this.open();
    const conversation = desk.find(target);
    if (conversation?.hasBegun) await desk.sync.learnName(conversation);
  }

  /**
   * What happened in a conversation: the last changes, or those before `before` (a `changeSeq`), oldest
   * first. Fewer than `limit` if it begins there. New ones come as `change` events.
   */
  async changes(target: Target, before?: number, limit = 100): Promise<Change[]> {
    const desk = this.open();
    const conversation = desk.find(target);
    return conversation === undefined ? [] : desk.sync.changesBefore(conversation, before, limit);
  }

  /** Takes a message back, for everybody. */
  async recall(serverMsgId: string): Promise<void> {
    await this.http.post("/msg/recall", { server_msg_id: serverMsgId });
    this.desk?.recalled(serverMsgId);
  }

  /** Who has read a message. */
  async readers(serverMsgId: string): Promise<Array<{ userId: string; hasRead: boolean }>> {
    const readers: Array<{ userId: string; hasRead: boolean }> = [];
    let cursor: string | undefined;
    do {
      const page = await this.http.get<{
        readers: Array<{ user_id: string; has_read: boolean }>;
        next_cursor?: string;
      }>("/msg/readers", { server_msg_id: serverMsgId, limit: 200, cursor });
      for (const one of page.readers) readers.push({ userId: one.user_id, hasRead: one.has_read });
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    return readers;
  }

  /**
   * Asks how far everybody in a group has read, and lets `state` and `readBy` of your messages follow; from
   * then on receipts keep them. Call it when somebody looks, and again when the line was away.
   */
  async loadReads(target: Target): Promise<void> {
    const desk = this.open();
    const conversation = desk.find(target);
    if (conversation === undefined || !("groupId" in conversation.address)) return;
    const members = await this.groups.readState(conversation.address.groupId);
    if (members === undefined) return;
    conversation.reads?.learn(members);
    desk.inbox.recount(conversation);
  }

  /** You are writing. Call it at every key; the others hear of it now and then. */
  typing(target: Target): void {
    const desk = this.open();
    const { me, typing } = desk;
    const conversationId = conversationOf(me, target);
    if (desk.find(target)?.hasBegun !== true) return; // before the first message nobody may be told
    if (this.now.name !== "online" || !typing.mayTell(conversationId)) return;
    this.link.send({ type: "TYPING", ...addressOf(me, conversationId) });
  }

  async pin(target: Target, pinned: boolean): Promise<void> {
    await this.open().choose(target, { is_pinned: pinned });
  }

  async receive(target: Target, receive: Receive): Promise<void> {
    const option = ["normal", "silent", "blocked"].indexOf(receive);
    await this.open().choose(target, { recv_msg_opt: option });
  }

  /** Takes a conversation out of the list until something is said in it, or puts it back. */
  async hide(target: Target, hidden = true): Promise<void> {
    await this.open().hide(target, hidden);
  }

  private linkTo(url: string, given: SocketClass | undefined): Link {
    const make = given ?? (globalThis.WebSocket as unknown as SocketClass | undefined);
    if (make === undefined) throw new Error(NO_SOCKET);
    const socketUrl = url.replace(/^http/, "ws") + "/ws";
    return new Link(socketUrl, make, this.signIn, this.clock, this.timing, {
      prepare: async () => this.desk?.prepare(),
      online: (limits) => this.desk?.online(limits),
      offline: () => this.desk?.offline(),
      frame: (frame) => this.desk?.hear(frame),
      state: (state) => {
        this.now = state;
        this.events.emit("state", state);
      },
    });
  }

  private async enter(): Promise<void> {
    const { clock, timing, store, http, link, keep, events } = this;
    const me = this.me as string;
    this.desk = new Desk(me, events, clock, timing, store, http, link, keep);
    this.unwatch ??= watchPage(() => this.refresh());
    this.link.start();
    await this.desk.loaded;
  }

  private leave(state?: State): void {
    this.unwatch?.();
    this.unwatch = undefined;
    if (this.desk === undefined) return;
    this.link.stop(state ?? { name: "offline" });
    this.desk.typing.end();
    this.desk = undefined;
    this.knownPeople.clear();
    for (const giveUp of [...this.waiting]) giveUp("missing_token");
  }

  private ended(reason: Reason): void {
    const state: State =
      reason === "kicked" ? { name: "kicked" } : { name: "signedOut", reason };
    this.link.stop(state);
    for (const giveUp of [...this.waiting]) giveUp(reason);
  }

  private open(): Desk {
    if (this.desk === undefined) throw nobody();
    return this.desk;
  }
}

function nobody(): Refused {
  return new Refused("missing_token", "nobody is signed in: call `login` or `resume` first");
}
