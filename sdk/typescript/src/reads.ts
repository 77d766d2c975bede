import type { MemberReadState } from "./groups.js";
import type { Message } from "./types.js";

/** The state of one of our messages by its receipts. */
export type MessageProgress = Pick<Message, "state" | "readBy">;

/** The operator's account: it posts in groups without being a member, and reads nothing. */
const SYSTEM = "system";

interface MemberCursors {
  /** The first message the member may see. */
  from: number;
  delivered: number;
  read: number;
}

/** The delivered and read cursors of the other members of a group. */
export class GroupReads {
  private readonly members = new Map<string, MemberCursors>();
  /** Whether all members are loaded; until then "read by all" is unknown. */
  private isComplete = false;

  constructor(private readonly me: string) {}

  /** Loads the cursors of all members; receipts that came meanwhile are kept. */
  load(members: readonly MemberReadState[]): void {
    const before = new Map(this.members);
    this.members.clear();
    for (const { userId, fromSeq: from, deliveredSeq, readSeq } of members) {
      if (userId === this.me) continue;
      const known = before.get(userId);
      const delivered = Math.max(deliveredSeq, known?.delivered ?? 0);
      this.members.set(userId, { from, delivered, read: Math.max(readSeq, known?.read ?? 0) });
    }
    this.isComplete = true;
  }

  /**
   * Applies a receipt; returns the previous cursor. Once all members are loaded, receipts of others are
   * ignored: they have left or never were members.
   */
  applyReceipt(userId: string, kind: "delivered" | "read", seq: number): number {
    if (userId === SYSTEM || (this.isComplete && !this.members.has(userId))) return seq;
    const known = this.members.get(userId) ?? { from: 0, delivered: 0, read: 0 };
    const before = known[kind];
    const delivered = Math.max(known.delivered, seq);
    this.members.set(userId, { ...known, delivered, read: kind === "read" ? Math.max(known.read, seq) : known.read });
    return before;
  }

  /**
   * Adds new members, who see messages from this seq on. If the server has listed them before, their cursors
   * stay.
   */
  join(userIds: readonly string[], from: number): void {
    for (const id of userIds) {
      if (id === this.me) continue;
      const known = this.members.get(id) ?? { from: 0, delivered: 0, read: 0 };
      this.members.set(id, { ...known, from: Math.max(known.from, from) });
    }
  }

  leave(userIds: readonly string[]): void {
    for (const id of userIds) this.members.delete(id);
  }

  /** The progress of our message at this seq: read if every member who may see it has read it. */
  at(seq: number): MessageProgress {
    let [there, delivered, read] = [0, 0, 0];
    for (const one of this.members.values()) {
      if (one.from > seq) continue;
      there += 1;
      if (one.delivered >= seq) delivered += 1;
      if (one.read >= seq) read += 1;
    }
    const isRead = this.isComplete && there > 0 && read === there;
    return { state: isRead ? "read" : delivered > 0 ? "delivered" : "saved", readBy: read };
  }
}
