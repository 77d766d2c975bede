import { type Message, type MessageState, Refused } from "nexo-sdk";
import { later } from "../later.ts";
import { notes } from "../notes.svelte.ts";
import { client } from "../session.svelte.ts";

const PAGE = 100;
/** So many are here before somebody scrolls. */
const FIRST = 60;
/** So far back the first unread one is looked for. */
const UNREAD_MAX = 600;
/** So far back an answered one is looked for. */
const QUOTE_PAGES = 50;
const PAUSE_MS = 2_000;

/** Whether this page has heard the server: then what is here is no guess, also while the line is away. */
let wasOnline = false;
client.on("state", ({ name }) => {
  wasOnline ||= name === "online";
});

/** The conversation that is open. */
export class Thread {
  messages = $state.raw<readonly Message[]>([]);
  typing = $state.raw<readonly string[]>([]);
  /** The first place that was unread when somebody came; 0 if none was. */
  unreadFrom = $state(0);
  /** Enough is here to show. */
  isReady = $state(false);
  /** Everything is here that is wanted at first; without a line it comes later. */
  private isFilled = false;
  isLoading = $state(false);
  hasOlder = $state(false);
  /** What was said last, for those who listen. */
  spoken = $state.raw<Message>();
  /** The oldest place here when nothing older was found. */
  private oldest = -1;
  private pausedUntil = 0;
  private readonly offs: Array<() => void> = [];
  private isClosed = false;
  /** How far it was read is known, as long as the line lasts. */
  private hasReads = false;
  private readonly lookAgain = later(() => this.refresh(), PAUSE_MS);

  constructor(readonly id: string) {
    const refresh = later(() => this.refresh());
    const mine = (event: { conversationId: string }) => event.conversationId === this.id;
    this.offs.push(
      client.on("message", (message) => {
        if (!mine(message)) return;
        if (this.isReady && !message.mine && Date.now() - message.at < 60_000) this.arrived(message);
        refresh();
      }),
      client.on("update", (message) => mine(message) && refresh()),
      client.on("removed", (gone) => mine(gone) && refresh()),
      client.on("conversation", (line) => line.id === this.id && refresh()),
      client.on("state", ({ name }) => {
        if (name !== "online") this.hasReads = false;
        refresh();
      }),
      client.on("typing", ({ conversationId, userId, on }) => {
        if (conversationId !== this.id) return;
        const others = this.typing.filter((one) => one !== userId);
        this.typing = on ? [...others, userId] : others;
      }),
    );
    this.refresh();
  }

  close(): void {
    this.isClosed = true;
    for (const off of this.offs) off();
  }

  /** Somebody answers, so nothing is unread any more. */
  answered(): void {
    this.unreadFrom = 0;
  }

  async older(): Promise<number> {
    if (this.isLoading || !this.hasOlder || Date.now() < this.pausedUntil) return 0;
    this.isLoading = true;
    const before = this.first();
    try {
      const found = await client.loadOlder(this.id, PAGE);
      this.messages = client.messages(this.id);
      // Nothing came, and nothing else has changed meanwhile: this is the beginning.
      if (found.length === 0 && this.first() === before) this.oldest = before;
      return found.length;
    } catch (error) {
      if (error instanceof Refused && !error.mayRetry) this.oldest = this.first();
      this.pausedUntil = Date.now() + PAUSE_MS;
      return 0;
    } finally {
      this.isLoading = false;
      this.refresh();
    }
  }

  /** There are unread ones before those that are here, and they are on their way: nobody has seen them. */
  get lacksUnread(): boolean {
    return !this.isFilled && this.hasOlder && this.unreadFrom > 0 && this.first() > this.unreadFrom;
  }

  find(serverMsgId: string): Message | undefined {
    return this.messages.findLast((message) => message.serverMsgId === serverMsgId);
  }

  /** Finds a message, far back if need be. */
  async seek(serverMsgId: string): Promise<Message | undefined> {
    for (let pages = 0; pages < QUOTE_PAGES; pages += 1) {
      const found = this.find(serverMsgId);
      if (found !== undefined) return found;
      if ((await this.older()) === 0 && !this.isLoading) return undefined;
    }
    return undefined;
  }

  private arrived(message: Message): void {
    this.spoken = message;
    const isLooking = document.hasFocus() && !document.hidden;
    const line = client.conversation(this.id);
    if (isLooking || message.seq === 0 || (line?.unread ?? 0) > 1) return;
    this.unreadFrom = message.seq;
  }

  private refresh(): void {
    if (this.isClosed) return;
    this.messages = client.messages(this.id);
    const line = client.conversation(this.id);
    const first = this.first();
    this.hasOlder = line !== undefined && first > 1 && first !== this.oldest;
    if (!this.isFilled) {
      if (!this.isReady && line !== undefined && line.unread > 0) this.unreadFrom = line.readSeq + 1;
      this.fill();
    }
    if (this.isReady && line !== undefined) this.lookAround(line.active);
  }

  /** Of a group: what happened among the messages that are here, and, for its members, how far they were read. */
  private lookAround(isMember: boolean): void {
    if (!this.id.startsWith("sg_") || client.state.name !== "online") return;
    void notes.reach(this.id, this.hasOlder ? (this.messages.find(({ seq }) => seq > 0)?.at ?? 0) : 0);
    if (this.hasReads || !isMember) return;
    this.hasReads = true;
    client.loadReads(this.id).catch((error) => (this.hasReads = error instanceof Refused));
  }

  /** Brings what is needed before the first look. */
  private fill(): void {
    const { name } = client.state;
    if (name !== "online") {
      // Before the server was heard nobody knows what is unread; if it is away there is only what is unsent.
      this.isReady ||= this.messages.length > 0 && (wasOnline || name === "offline");
      return;
    }
    const first = this.first();
    const isEnough = this.messages.length >= FIRST && (this.unreadFrom === 0 || first <= this.unreadFrom);
    if (!this.hasOlder || isEnough || this.messages.length > UNREAD_MAX) {
      this.isReady = this.isFilled = true;
    } else if (Date.now() >= this.pausedUntil) {
      void this.older();
    } else {
      this.isReady ||= this.messages.length > 0;
      this.lookAgain();
    }
  }

  private first(): number {
    const held = this.messages.find((message) => message.seq > 0);
    return held?.seq ?? (client.conversation(this.id)?.lastSeq ?? 0) + 1;
  }
}

/** Whether it has not arrived for good. */
export function isPending(state: MessageState): boolean {
  return state === "sending" || state === "accepted" || state === "preview";
}
