import type { Message } from "./types.js";

/** What the server counts as unread, up to a place: all of it, or what speaks to us. */
export interface UnreadTold {
  upTo: number;
  read: number;
  unread: number;
}

/**
 * The messages of a conversation that are on this device: a run of places without a hole, and how many
 * of them are unread. What is unread before the run is only known from the server's count.
 */
export class Held {
  private messages: Message[] = [];
  private readonly places = new Map<string, number>();
  private before = { unread: 0, mentions: 0 };
  private within = { unread: 0, mentions: 0 };
  /** What was told of places that are not here yet. */
  private told: { unread?: UnreadTold; mentions?: UnreadTold } = {};
  private readSeq = 0;
  /** Grows whenever `all`, `first` or `last` changes. */
  private changes = 0;

  /** The run begins after this place. */
  constructor(private start: number) {}

  get all(): readonly Message[] {
    return this.messages;
  }

  get version(): number {
    return this.changes;
  }

  /** The first place of the run, even if it is empty yet. */
  get first(): number {
    return this.start + 1;
  }

  get last(): number {
    return this.start + this.messages.length;
  }

  get read(): number {
    return this.readSeq;
  }

  get unread(): number {
    return this.before.unread + this.within.unread;
  }

  get mentions(): number {
    return this.before.mentions + this.within.mentions;
  }

  at(seq: number): Message | undefined {
    return this.messages[seq - this.first];
  }

  find(serverMsgId: string): Message | undefined {
    const seq = this.places.get(serverMsgId);
    return seq === undefined ? undefined : this.at(seq);
  }

  /** Puts the next one at the end. */
  append(message: Message): void {
    if (message.seq !== this.last + 1) throw new Error("a hole in what is held");
    this.messages.push(message);
    this.changes += 1;
    this.places.set(message.serverMsgId, message.seq);
    this.count(message, 1);
    this.compare();
  }

  /** Puts older ones before the others; they end where the run begins. */
  prepend(older: Message[]): void {
    if (older.at(-1)?.seq !== this.start) throw new Error("a hole in what is held");
    this.messages = [...older, ...this.messages];
    this.changes += 1;
    this.start -= older.length;
    const known = { ...this.within };
    for (const message of older) {
      this.places.set(message.serverMsgId, message.seq);
      this.count(message, 1);
    }
    this.before.unread -= this.within.unread - known.unread;
    this.before.mentions -= this.within.mentions - known.mentions;
    this.floor();
  }

  /** Lets go of the oldest; they can be loaded again. */
  trim(keep: number): void {
    const many = this.messages.length - keep;
    if (many <= 0) return;
    const known = { ...this.within };
    for (const message of this.messages.slice(0, many)) {
      this.places.delete(message.serverMsgId);
      this.count(message, -1);
    }
    this.before.unread += known.unread - this.within.unread;
    this.before.mentions += known.mentions - this.within.mentions;
    this.messages = this.messages.slice(many);
    this.changes += 1;
    this.start += many;
  }

  /** Nothing before this place is ours to see any more. */
  cutBefore(seq: number): void {
    if (seq <= this.first) return;
    this.changes += 1;
    this.trim(Math.max(0, this.last - seq + 1));
    if (this.messages.length === 0) this.start = seq - 1;
    this.before = { unread: 0, mentions: 0 };
  }

  /** News about one that is held; the message as it is now. */
  change(seq: number, news: Partial<Message>): Message | undefined {
    const message = this.at(seq);
    if (message === undefined) return undefined;
    const changed = { ...message, ...news };
    this.messages[seq - this.first] = changed;
    this.changes += 1;
    return changed;
  }

  /** Moves the read cursor, rarely also back. */
  readTo(seq: number): void {
    if (seq === this.readSeq) return;
    const [from, to] = [Math.min(seq, this.readSeq), Math.max(seq, this.readSeq)];
    const isBack = seq < this.readSeq;
    if (isBack) this.readSeq = seq;
    for (let at = Math.max(from + 1, this.first); at <= Math.min(to, this.last); at += 1) {
      this.count(this.at(at) as Message, isBack ? 1 : -1);
    }
    this.readSeq = seq;
    this.floor();
  }

  /** What the server counts as unread, for what is before the run. */
  hear(told: UnreadTold): void {
    this.told.unread = told;
    this.compare();
  }

  /** The server's count of messages that speak to us. */
  hearMentions(told: UnreadTold): void {
    this.told.mentions = told;
    this.compare();
  }

  private compare(): void {
    for (const kind of ["unread", "mentions"] as const) {
      const told = this.told[kind];
      if (told === undefined || told.upTo > this.last) continue;
      delete this.told[kind];
      if (told.read !== this.readSeq) continue;
      let within = this.within[kind];
      for (let at = Math.max(told.upTo + 1, this.first); at <= this.last; at += 1) {
        const message = this.at(at) as Message;
        if (this.isUnread(message) && (kind === "unread" || message.important)) within -= 1;
      }
      this.before[kind] = told.unread - within;
      this.floor();
    }
  }

  /** Once everything unread is held, the count is ours alone. */
  private floor(): void {
    if (this.readSeq >= this.start) this.before = { unread: 0, mentions: 0 };
    this.before.unread = Math.max(0, this.before.unread);
    this.before.mentions = Math.max(0, this.before.mentions);
  }

  private isUnread(message: Message): boolean {
    return !message.mine && message.seq > this.readSeq;
  }

  private count(message: Message, by: 1 | -1): void {
    if (!this.isUnread(message)) return;
    this.within.unread += by;
    if (message.important) this.within.mentions += by;
  }
}
