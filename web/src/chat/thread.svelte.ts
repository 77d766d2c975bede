import { type Message, type MessageState, Refused } from "nexo-sdk";
import { debounce } from "../debounce.ts";
import { groupChanges } from "../groupChanges.svelte.ts";
import { client } from "../session.svelte.ts";

const PAGE = 100;
/** This many messages are loaded first. */
const FIRST_MESSAGES = 60;
/** How far back the first unread message is searched. */
const UNREAD_MAX = 600;
/** How many pages back a quoted message is searched. */
const QUOTE_PAGES_MAX = 50;
const PAUSE_MS = 2_000;

/** Whether this page was online once: then the unread counts are known, also while offline. */
let wasOnline = false;
client.on("state", ({ name }) => {
  wasOnline ||= name === "online";
});

/** The open conversation. */
export class Thread {
  messages = $state.raw<readonly Message[]>([]);
  typing = $state.raw<readonly string[]>([]);
  /** The first seq that was unread when the conversation was opened; 0 if none was. */
  unreadFrom = $state(0);
  /** Whether enough is loaded to be shown. */
  isReady = $state(false);
  /** Whether the first messages are loaded; offline that happens later. */
  private isFilled = false;
  isLoading = $state(false);
  hasOlder = $state(false);
  /** The last message that arrived, for screen readers. */
  announced = $state.raw<Message>();
  /** The oldest seq, once no older message was found. */
  private oldest = -1;
  private pausedUntil = 0;
  private readonly unsubscribes: Array<() => void> = [];
  private isClosed = false;
  /** Whether the read state is loaded on this connection. */
  private hasReads = false;
  private readonly retryFill = debounce(() => this.refresh(), PAUSE_MS);

  constructor(readonly id: string) {
    const refresh = debounce(() => this.refresh());
    const mine = (event: { conversationId: string }) => event.conversationId === this.id;
    this.unsubscribes.push(
      client.on("message", (message) => {
        if (!mine(message)) return;
        if (this.isReady && !message.isMine && Date.now() - message.at < 60_000) this.arrived(message);
        refresh();
      }),
      client.on("update", (message) => mine(message) && refresh()),
      client.on("removed", (gone) => mine(gone) && refresh()),
      client.on("conversation", (summary) => summary.id === this.id && refresh()),
      client.on("state", ({ name }) => {
        if (name !== "online") this.hasReads = false;
        refresh();
      }),
      client.on("typing", ({ conversationId, userId, isTyping }) => {
        if (conversationId !== this.id) return;
        const others = this.typing.filter((one) => one !== userId);
        this.typing = isTyping ? [...others, userId] : others;
      }),
    );
    this.refresh();
  }

  close(): void {
    this.isClosed = true;
    for (const off of this.unsubscribes) off();
  }

  /** Removes the unread marker: the user has replied. */
  clearUnread(): void {
    this.unreadFrom = 0;
  }

  async loadOlder(): Promise<number> {
    if (this.isLoading || !this.hasOlder || Date.now() < this.pausedUntil) return 0;
    this.isLoading = true;
    const before = this.first();
    try {
      const found = await client.loadOlder(this.id, PAGE);
      this.messages = client.messages(this.id);
      // Nothing came and nothing else changed: this is the beginning.
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

  /** Whether unread messages before the loaded ones are still loading, so that they are not marked as read. */
  get isMissingUnread(): boolean {
    return !this.isFilled && this.hasOlder && this.unreadFrom > 0 && this.first() > this.unreadFrom;
  }

  find(serverMsgId: string): Message | undefined {
    return this.messages.findLast((message) => message.serverMsgId === serverMsgId);
  }

  /** Finds a message, loading older pages if needed. */
  async findOrLoad(serverMsgId: string): Promise<Message | undefined> {
    for (let pages = 0; pages < QUOTE_PAGES_MAX; pages += 1) {
      const found = this.find(serverMsgId);
      if (found !== undefined) return found;
      if ((await this.loadOlder()) === 0 && !this.isLoading) return undefined;
    }
    return undefined;
  }

  private arrived(message: Message): void {
    this.announced = message;
    const isLooking = document.hasFocus() && !document.hidden;
    const summary = client.conversation(this.id);
    if (isLooking || message.seq === 0 || (summary?.unread ?? 0) > 1) return;
    this.unreadFrom = message.seq;
  }

  private refresh(): void {
    if (this.isClosed) return;
    this.messages = client.messages(this.id);
    const summary = client.conversation(this.id);
    const first = this.first();
    this.hasOlder = summary !== undefined && first > 1 && first !== this.oldest;
    if (!this.isFilled) {
      if (!this.isReady && summary !== undefined && summary.unread > 0) this.unreadFrom = summary.readSeq + 1;
      this.fill();
    }
    if (this.isReady && summary !== undefined) this.loadGroupState(summary.isActive);
  }

  /** In a group: loads the changes among the loaded messages and, for members, the read state. */
  private loadGroupState(isMember: boolean): void {
    if (!this.id.startsWith("sg_") || client.state.name !== "online") return;
    void groupChanges.loadSince(this.id, this.hasOlder ? (this.messages.find(({ seq }) => seq > 0)?.at ?? 0) : 0);
    if (this.hasReads || !isMember) return;
    this.hasReads = true;
    client.loadReads(this.id).catch((error) => (this.hasReads = error instanceof Refused));
  }

  /** Loads what is shown first. */
  private fill(): void {
    const { name } = client.state;
    if (name !== "online") {
      // Before the first connection unread counts are unknown; offline only unsent messages can be shown.
      this.isReady ||= this.messages.length > 0 && (wasOnline || name === "offline");
      return;
    }
    const first = this.first();
    const isEnough = this.messages.length >= FIRST_MESSAGES && (this.unreadFrom === 0 || first <= this.unreadFrom);
    if (!this.hasOlder || isEnough || this.messages.length > UNREAD_MAX) {
      this.isReady = this.isFilled = true;
    } else if (Date.now() >= this.pausedUntil) {
      void this.loadOlder();
    } else {
      this.isReady ||= this.messages.length > 0;
      this.retryFill();
    }
  }

  private first(): number {
    const held = this.messages.find((message) => message.seq > 0);
    return held?.seq ?? (client.conversation(this.id)?.lastSeq ?? 0) + 1;
  }
}

/** Whether the message has no seq yet. */
export function isPending(state: MessageState): boolean {
  return state === "sending" || state === "accepted" || state === "preview";
}
