import type { Message } from "./types.js";

/** An unread count of the server for messages up to a seq: of all messages, or of mentions. */
export interface ServerUnread {
  upTo: number;
  read: number;
  count: number;
}

/**
 * The messages of a conversation on this device: a range of seqs without a gap, and how many of them are
 * unread. Unread messages before the range are only known from the server's count.
 */
export class MessageWindow {
  private messages: Message[] = [];
  private readonly seqById = new Map<string, number>();
  private before = { unread: 0, mentions: 0 };
  private within = { unread: 0, mentions: 0 };
  /** Counts of the server that wait until the messages they count have arrived. */
  private serverCounts: { unread?: ServerUnread; mentions?: ServerUnread } = {};
  private readSeq = 0;
  /** Incremented whenever `all`, `first` or `last` changes. */
  private changes = 0;

  /** The range begins after this seq. */
  constructor(private start: number) {}

  get all(): readonly Message[] {
    return this.messages;
  }

  get version(): number {
    return this.changes;
  }

  /** The first seq of the range, also while it is empty. */
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

  /** The last message up to this seq that has an id. */
  lastReadable(seq: number): Message | undefined {
    let message = this.at(seq);
    while (message?.isDamaged) message = this.at(message.seq - 1);
    return message;
  }

  find(serverMsgId: string): Message | undefined {
    const seq = this.seqById.get(serverMsgId);
    return seq === undefined ? undefined : this.at(seq);
  }

  /** Appends the next message. */
  append(message: Message): void {
    if (message.seq !== this.last + 1) throw new Error("a gap in the message window");
    this.messages.push(message);
    this.changes += 1;
    this.seqById.set(message.serverMsgId, message.seq);
    this.count(message, 1);
    this.applyServerCounts();
  }

  /** Prepends older messages; they must end where the range begins. */
  prepend(older: Message[]): void {
    if (older.at(-1)?.seq !== this.start) throw new Error("a gap in the message window");
    this.messages = [...older, ...this.messages];
    this.changes += 1;
    this.start -= older.length;
    const counted = { ...this.within };
    for (const message of older) {
      this.seqById.set(message.serverMsgId, message.seq);
      this.count(message, 1);
    }
    this.before.unread -= this.within.unread - counted.unread;
    this.before.mentions -= this.within.mentions - counted.mentions;
    this.clampBefore();
  }

  /** Drops the oldest messages; they can be loaded again. */
  trim(keep: number): void {
    const excess = this.messages.length - keep;
    if (excess <= 0) return;
    const counted = { ...this.within };
    for (const message of this.messages.slice(0, excess)) {
      this.seqById.delete(message.serverMsgId);
      this.count(message, -1);
    }
    this.before.unread += counted.unread - this.within.unread;
    this.before.mentions += counted.mentions - this.within.mentions;
    this.messages = this.messages.slice(excess);
    this.changes += 1;
    this.start += excess;
  }

  /** Drops the messages before this seq, which the user may no longer see. */
  cutBefore(seq: number): void {
    if (seq <= this.first) return;
    this.changes += 1;
    this.trim(Math.max(0, this.last - seq + 1));
    if (this.messages.length === 0) this.start = seq - 1;
    this.before = { unread: 0, mentions: 0 };
  }

  /** Changes a message; returns the new one. */
  update(seq: number, fields: Partial<Message>): Message | undefined {
    const message = this.at(seq);
    if (message === undefined) return undefined;
    const changed = { ...message, ...fields };
    this.messages[seq - this.first] = changed;
    this.changes += 1;
    return changed;
  }

  /** Moves the read cursor; the server may also move it back. */
  readTo(seq: number): void {
    if (seq === this.readSeq) return;
    const [from, to] = [Math.min(seq, this.readSeq), Math.max(seq, this.readSeq)];
    const isBack = seq < this.readSeq;
    if (isBack) this.readSeq = seq;
    for (let at = Math.max(from + 1, this.first); at <= Math.min(to, this.last); at += 1) {
      this.count(this.at(at) as Message, isBack ? 1 : -1);
    }
    this.readSeq = seq;
    this.clampBefore();
  }

  /** Sets the server's unread count, to know how many are before the range. */
  setServerUnread(server: ServerUnread): void {
    this.serverCounts.unread = server;
    this.applyServerCounts();
  }

  /** Sets the server's count of unread mentions. */
  setServerMentions(server: ServerUnread): void {
    this.serverCounts.mentions = server;
    this.applyServerCounts();
  }

  private applyServerCounts(): void {
    for (const kind of ["unread", "mentions"] as const) {
      const server = this.serverCounts[kind];
      if (server === undefined || server.upTo > this.last) continue;
      delete this.serverCounts[kind];
      if (server.read !== this.readSeq) continue;
      let within = this.within[kind];
      for (let at = Math.max(server.upTo + 1, this.first); at <= this.last; at += 1) {
        const message = this.at(at) as Message;
        if (this.isUnread(message) && (kind === "unread" || message.isImportant)) within -= 1;
      }
      this.before[kind] = server.count - within;
      this.clampBefore();
    }
  }

  /** If the read cursor is within the range, nothing before it is unread. */
  private clampBefore(): void {
    if (this.readSeq >= this.start) this.before = { unread: 0, mentions: 0 };
    this.before.unread = Math.max(0, this.before.unread);
    this.before.mentions = Math.max(0, this.before.mentions);
  }

  private isUnread(message: Message): boolean {
    return !message.isMine && message.seq > this.readSeq;
  }

  private count(message: Message, by: 1 | -1): void {
    if (!this.isUnread(message)) return;
    this.within.unread += by;
    if (message.isImportant) this.within.mentions += by;
  }
}
