import { toCamel, toSnake } from "./casing.js";
import { type Clock, wallClock } from "./clock.js";
import { codes, type Reason } from "./codes.js";
import { AccountState } from "./accountState.js";
import { type Device, endDevices, listDevices } from "./devices.js";
import { Emitter, type Off } from "./events.js";
import { Groups } from "./groups.js";
import { Http, type Reply, type RequestBody } from "./http.js";
import { Link } from "./link.js";
import type { ClientOptions } from "./options.js";
import { watchPage } from "./page.js";
import { KnownPeople, type NewUser, People, type User } from "./people.js";
import { type Consent, getConsent, listBlocked, putConsent } from "./privacy.js";
import { Refused } from "./refusal.js";
import { sameArray, Subscribers } from "./snapshot.js";
import type { SocketClass } from "./socket.js";
import { defaultStore, BestEffortStore, type Store } from "./storage.js";
import { defaultTiming, type Timing } from "./timing.js";
import { type Grant, type LoginTokens, SignIn } from "./tokens.js";
import {
  addressOf,
  type Change,
  type Content,
  type ConversationSummary,
  conversationOf,
  type Events,
  type Message,
  type Receive,
  type SendOptions,
  type State,
  type Target,
} from "./types.js";

const KEEP_DEFAULT = 5_000;
const NO_SOCKET =
  "there is no WebSocket here: in Node before version 22 install `ws` and give its class, " +
  "`new Client({ url, webSocket: WebSocket })`";
const EMPTY: readonly never[] = Object.freeze([]);

/** A signed-in connection to the server: one per user and device. */
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
  private account: AccountState | undefined;
  private currentState: State = { name: "offline" };
  private stopWatchingPage: Off | undefined;
  private lastList: readonly ConversationSummary[] = EMPTY;
  private readonly subscribers = new Subscribers();
  private readonly knownPeople = new KnownPeople(() => this.subscribers.notify());
  /** Pending calls of `saved`, rejected when the sign-in ends. */
  private readonly savedWaiters = new Set<(reason: Reason) => void>();

  constructor(options: ClientOptions) {
    const url = options.url.replace(/\/+$/, "");
    if (!/^https?:\/\//.test(url)) {
      throw new TypeError(`url: an address such as https://chat.example.com, not "${options.url}"`);
    }
    this.clock = options.clock ?? wallClock;
    this.timing = { ...defaultTiming, ...options.timing };
    this.keep = options.keep ?? KEEP_DEFAULT;
    this.platform = options.platform ?? 5;
    const problem = (error: Error) => this.events.emit("problem", error);
    this.store = new BestEffortStore(options.store ?? defaultStore(), problem);
    const { httpTimeoutMs, refreshTimeoutMs } = this.timing;
    const refresh = (refresh_token: string) =>
      this.http.postWithoutToken<Grant>("/auth/refresh", { refresh_token }, refreshTimeoutMs);
    this.signIn = new SignIn(this.clock, this.store, refresh);
    const fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.http = new Http(url, fetch, this.clock, httpTimeoutMs, this.signIn);
    this.groups = new Groups(this.http, (group) => this.account?.applyGroup(group));
    this.people = new People(this.http, this.knownPeople);
    this.link = this.createLink(url, options.webSocket);
    this.signIn.onRenewed = (token) => void this.link.send({ type: "REAUTH", token });
    this.signIn.onEnded = (reason) => this.onSessionEnded(reason);
    this.signIn.hasSocket = () => this.link.isConnected;
    this.events.on("person", (person) => this.knownPeople.update(person));
    for (const name of ["state", "message", "update", "removed", "conversation"] as const) {
      this.events.on(name, () => this.subscribers.notify());
    }
  }

  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): Off {
    return this.events.on(name, listener);
  }

  /**
   * Calls `listener` after a change to anything that `state`, `conversations`, `conversation`, `messages` or
   * `people.known` return; once for all changes of one moment. It is bound, so it can be passed on:
   * `useSyncExternalStore(client.subscribe, () => client.messages(target))`.
   */
  readonly subscribe = (listener: () => void): Off => this.subscribers.add(listener);

  get state(): State {
    return this.currentState;
  }

  /** The id of the signed-in user. */
  get me(): string | undefined {
    return this.signIn.userId;
  }

  /** Creates an account. It does not sign in. */
  async register(user: NewUser): Promise<User> {
    return toCamel(await this.http.postWithoutToken<object>("/user/register", toSnake(user)));
  }

  /** Signs in and connects. */
  async login(userId: string, password: string): Promise<void> {
    const body = { user_id: userId, password, platform_id: this.platform };
    await this.enter(await this.http.postWithoutToken<Grant>("/auth/login", body));
  }

  /**
   * Signs in with a token of the identity provider that the server trusts, and connects. `deviceName` is shown
   * in the user's list of devices.
   */
  async loginWithToken(token: string, deviceName?: string): Promise<void> {
    const name = deviceName !== undefined && { device_name: deviceName };
    const body = { token, platform_id: this.platform, ...name };
    await this.enter(await this.http.postWithoutToken<Grant>("/auth/token", body));
  }

  /** Signs in with tokens that the app's backend obtained from the server, and connects. */
  async loginWithTokens(tokens: LoginTokens): Promise<void> {
    const { userId, token, refreshToken, expiresIn } = tokens;
    await this.enter({
      token,
      refresh_token: refreshToken,
      expires_in: expiresIn,
      user_info: { user_id: userId },
    });
  }

  /** Resumes the stored sign-in of an earlier run and connects; false if there is none. */
  async resume(): Promise<boolean> {
    if (this.account !== undefined && this.me !== undefined) return true;
    this.closeAccount(); // of a sign-in that has ended
    if (!(await this.signIn.resume())) return false;
    await this.openAccount();
    return true;
  }

  /** Signs out, here and on the server, and deletes unsent messages. */
  async logout(): Promise<void> {
    const me = this.me;
    const request = me === undefined ? undefined : this.http.post("/auth/logout");
    await request?.catch(() => {}); // sign out here even if the server cannot be reached
    this.closeAccount({ name: "signedOut", reason: "logout" });
    this.signIn.end();
    await this.signIn.whenDeleted(); // a reload must not find the sign-in in the store
    for (const [key] of await this.store.list(`outbox/${me}/`)) await this.store.delete(key);
    await this.store.delete(`joins/${me}`);
  }

  /** Ends every sign-in of this user, this one too. */
  async changePassword(oldPassword: string, newPassword: string): Promise<void> {
    const body = { old_password: oldPassword, new_password: newPassword };
    await this.http.post("/user/change_password", body);
  }

  /** Sets a new password with a one-time code from the operator. Ends every sign-in of this user. */
  async resetPassword(userId: string, code: string, newPassword: string): Promise<void> {
    const body = { user_id: userId, code, new_password: newPassword };
    await this.http.postWithoutToken("/user/reset_password", body);
  }

  /** The devices on which you are signed in, newest sign-in first. */
  devices(): Promise<Device[]> {
    return listDevices(this.http);
  }

  /** Signs a device of yours out, by the `loginId` of `devices`. */
  async endDevice(loginId: string): Promise<void> {
    await endDevices(this.http, { login_id: loginId });
  }

  /** Signs out all your devices but this one; returns how many. */
  endOtherDevices(): Promise<number> {
    return endDevices(this.http, { others: true });
  }

  /**
   * Blocks a user: you receive nothing of your private conversation, and they neither see whether you are online
   * nor can add you to groups. The same as `receive({ to: userId }, "blocked")`.
   */
  block(userId: string): Promise<void> {
    return this.requireAccount().setBlocked(userId, true);
  }

  /** Ends a block; what was sent meanwhile arrives. */
  unblock(userId: string): Promise<void> {
    return this.requireAccount().setBlocked(userId, false);
  }

  /** The ids of all users you blocked. */
  blocked(): Promise<string[]> {
    return listBlocked(this.http);
  }

  /** Who may contact you and see you. */
  consent(): Promise<Consent> {
    return getConsent(this.http);
  }

  /** Changes who may contact you and see you: the given fields; returns all. */
  setConsent(choices: Partial<Consent>): Promise<Consent> {
    return putConsent(this.http, choices);
  }

  /**
   * The access token, refreshed if it has expired, for requests made without this client. It is valid for
   * minutes, so call this each time.
   */
  token(): Promise<string> {
    return this.signIn.token();
  }

  /**
   * Sends a request the SDK has no method for, with the token if signed in. Names are those of docs/http.md;
   * the result is the whole envelope. For GET and DELETE the fields of `body` become the query.
   */
  request<Data = unknown>(method: string, path: string, body?: RequestBody): Promise<Reply<Data>> {
    return this.http.request<Data>(method, path, body, this.me !== undefined);
  }

  /** Connects again after `disconnect`. */
  connect(): void {
    if (this.account === undefined || this.me === undefined) throw notSignedIn();
    this.link.start();
  }

  /** Closes the connection; messages sent meanwhile wait in the outbox. */
  disconnect(): void {
    this.link.stop({ name: "offline" });
  }

  /**
   * Resolves when the client is connected and has loaded the conversations. `login` and `resume` do not wait
   * for that, so that an app can show stored data meanwhile. Rejects if the sign-in ends first.
   */
  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = (state: State) => {
        const isOver = this.account === undefined || state.name === "kicked" || state.name === "signedOut";
        if (state.name !== "online" && !isOver) return;
        off();
        if (!isOver) return resolve();
        const reason = state.name === "signedOut" ? state.reason : state.name;
        reject(reason in codes ? new Refused(reason as Reason) : notSignedIn());
      };
      const off = this.on("state", (state) => queueMicrotask(() => check(state)));
      check(this.currentState);
    });
  }

  /** Compares with the server now: call it when the app becomes visible or the network is back. */
  refresh(): void {
    this.link.retryNow();
    this.account?.sync.scheduleHeads();
  }

  /**
   * Pings the server: true with the next frame, false if there is no connection or it ends first. There is no
   * timeout; the app decides how long is too long.
   */
  ping(): Promise<boolean> {
    return this.link.ping();
  }

  /** Drops a connection on which the server does not answer and opens a new one. */
  reconnect(): void {
    this.link.reconnect();
  }

  /** Closes the client for good. */
  close(): void {
    this.closeAccount({ name: "offline" });
    this.signIn.stop();
  }

  /**
   * The list: pinned conversations first, then the latest; without ended and hidden ones. The same array
   * until it changes.
   */
  conversations(): readonly ConversationSummary[] {
    const all = [...(this.account?.inbox.conversations.values() ?? [])];
    const summaries = all.filter((one) => one.isListed).map((one) => one.summary());
    const rank = (summary: ConversationSummary) => Number(summary.isPinned);
    summaries.sort((a, b) => rank(b) - rank(a) || b.updatedAt - a.updatedAt);
    this.lastList = sameArray(this.lastList, summaries);
    return this.lastList;
  }

  /** The summary of one conversation. The same object until it changes. */
  conversation(target: Target): ConversationSummary | undefined {
    return this.account?.find(target)?.summary();
  }

  /**
   * The messages on this device in order, those without a seq at the end. The same array until one is added,
   * removed or changed, and each message the same object until it changes.
   */
  messages(target: Target): readonly Message[] {
    return this.account?.find(target)?.list() ?? EMPTY;
  }

  /**
   * Sends a message. It stays in the outbox until the server saves or refuses it, across connections and
   * restarts.
   */
  send(target: Target, content: string | Content, options: SendOptions = {}): Message {
    return this.requireAccount().send(target, typeof content === "string" ? { body: content } : content, options);
  }

  /** Resolves when a sent message is saved; rejects if it is refused or the sign-in ends. */
  saved(message: Message): Promise<Message> {
    return new Promise((resolve, reject) => {
      const check = (now: Message) => {
        if (now.clientMsgId !== message.clientMsgId || !now.isMine) return;
        if (now.state === "refused") return giveUp(now.reason as Reason);
        if (now.seq === 0) return;
        done();
        resolve(now);
      };
      const giveUp = (reason: Reason) => {
        done();
        reject(new Refused(reason));
      };
      const off = this.on("update", check);
      const done = () => {
        off();
        this.savedWaiters.delete(giveUp);
      };
      this.savedWaiters.add(giveUp);
      const known = this.messages(message.conversationId);
      check(known.find((one) => one.isMine && one.clientMsgId === message.clientMsgId) ?? message);
      if (this.me === undefined) giveUp("missing_token");
    });
  }

  /** Sends a refused message again. */
  retry(clientMsgId: string): void {
    this.requireAccount().retry(clientMsgId);
  }

  /** Deletes a refused message. */
  discard(clientMsgId: string): void {
    this.requireAccount().discard(clientMsgId);
  }

  /** Marks everything up to `seq` as read, or everything on this device. */
  markRead(target: Target, seq?: number): void {
    this.requireAccount().markRead(target, seq);
  }

  /** Loads older messages; empty if there are none. */
  loadOlder(target: Target, limit = 50): Promise<Message[]> {
    return this.requireAccount().loadOlder(target, limit);
  }

  /**
   * Loads the name, the avatar and the member count of a conversation that is not in the list; those in the
   * list load by themselves. Call it when the user opens an ended or hidden conversation.
   */
  async loadName(target: Target): Promise<void> {
    const account = this.requireAccount();
    const conversation = account.find(target);
    if (conversation?.hasBegun) await account.sync.loadInfo(conversation);
  }

  /**
   * The latest changes of a conversation, or those before the `changeSeq` `before`, oldest first. Fewer than
   * `limit` at its beginning. New ones come as `change` events.
   */
  async changes(target: Target, before?: number, limit = 100): Promise<Change[]> {
    const account = this.requireAccount();
    const conversation = account.find(target);
    return conversation === undefined ? [] : account.sync.changesBefore(conversation, before, limit);
  }

  /** Recalls a message for all members. */
  async recall(serverMsgId: string): Promise<void> {
    await this.http.post("/msg/recall", { server_msg_id: serverMsgId });
    this.account?.recallAnywhere(serverMsgId);
  }

  /** The members of the conversation and whether each has read the message. */
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
   * Loads the read cursors of the members of a group and updates `state` and `readBy` of your messages;
   * receipts keep them current from then on. Call it when the user opens the group, and again after a lost
   * connection.
   */
  async loadReads(target: Target): Promise<void> {
    const account = this.requireAccount();
    const conversation = account.find(target);
    if (conversation === undefined || !("groupId" in conversation.address)) return;
    const members = await this.groups.readState(conversation.address.groupId);
    if (members === undefined) return;
    conversation.reads?.load(members);
    account.inbox.recount(conversation);
  }

  /** Reports that the user is typing. Call it at every key; it is sent at most once per `typingEveryMs`. */
  typing(target: Target): void {
    const account = this.requireAccount();
    const { me, typing } = account;
    const conversationId = conversationOf(me, target);
    if (account.find(target)?.hasBegun !== true) return; // the server refuses it before the first message
    if (this.currentState.name !== "online" || !typing.recordSendIfDue(conversationId)) return;
    this.link.send({ type: "TYPING", ...addressOf(me, conversationId) });
  }

  /** Pins a conversation to the top of the list, or unpins it. A private one needs no message for it. */
  async pin(target: Target, isPinned: boolean): Promise<void> {
    await this.requireAccount().updateSettings(target, { is_pinned: isPinned });
  }

  /**
   * Sets how you are notified of a conversation. A private one needs no message for it: a user can be blocked
   * before they write. Then `conversation()` has the setting, and the list nothing.
   */
  async receive(target: Target, receive: Receive): Promise<void> {
    const option = ["normal", "silent", "blocked"].indexOf(receive);
    await this.requireAccount().updateSettings(target, { recv_msg_opt: option });
  }

  /** Hides a conversation from the list until its next message, or shows it again. */
  async hide(target: Target, isHidden = true): Promise<void> {
    await this.requireAccount().hide(target, isHidden);
  }

  private createLink(url: string, given: SocketClass | undefined): Link {
    const make = given ?? (globalThis.WebSocket as unknown as SocketClass | undefined);
    if (make === undefined) throw new Error(NO_SOCKET);
    const socketUrl = url.replace(/^http/, "ws") + "/ws";
    return new Link(socketUrl, make, this.signIn, this.clock, this.timing, {
      prepare: async () => this.account?.prepare(),
      online: (limits) => this.account?.online(limits),
      offline: () => this.account?.offline(),
      frame: (frame) => this.account?.dispatch(frame),
      state: (state) => {
        this.currentState = state;
        this.events.emit("state", state);
      },
    });
  }

  /** Takes over a new sign-in and connects. */
  private async enter(grant: Grant): Promise<void> {
    this.closeAccount();
    await this.signIn.take(grant);
    await this.openAccount();
  }

  private async openAccount(): Promise<void> {
    const { clock, timing, store, http, link, keep, events } = this;
    const me = this.me as string;
    this.account = new AccountState(me, events, clock, timing, store, http, link, keep);
    this.stopWatchingPage ??= watchPage(() => this.refresh());
    this.link.start();
    await this.account.loaded;
  }

  private closeAccount(state?: State): void {
    this.stopWatchingPage?.();
    this.stopWatchingPage = undefined;
    if (this.account === undefined) return;
    this.link.stop(state ?? { name: "offline" });
    this.account.typing.end();
    this.account = undefined;
    this.knownPeople.clear();
    for (const giveUp of [...this.savedWaiters]) giveUp("missing_token");
  }

  private onSessionEnded(reason: Reason): void {
    const state: State =
      reason === "kicked" ? { name: "kicked" } : { name: "signedOut", reason };
    this.link.stop(state);
    for (const giveUp of [...this.savedWaiters]) giveUp(reason);
  }

  private requireAccount(): AccountState {
    if (this.account === undefined) throw notSignedIn();
    return this.account;
  }
}

function notSignedIn(): Refused {
  return new Refused("missing_token", "not signed in: call `login` or `resume` first");
}
