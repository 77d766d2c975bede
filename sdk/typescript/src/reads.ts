import type { MemberReadState } from "./groups.js";
import type { Message } from "./types.js";

/** What receipts say about one of our own messages. */
export type Progress = Pick<Message, "state" | "readBy">;

/** The operator's voice: it speaks in groups without being a member, and reads nothing. */
const SYSTEM = "system";

interface Cursors {
  /** The first message they were there for. */
  from: number;
  delivered: number;
  read: number;
}

/** How far the other members of a group have received and read. */
export class GroupReads {
  private readonly members = new Map<string, Cursors>();
  /** Whether everybody is known; until then nobody can say that all have read. */
  private isComplete = false;

  constructor(private readonly me: string) {}

  /** The server told everybody's cursors; receipts that came meanwhile are not lost. */
  learn(members: readonly MemberReadState[]): void {
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
   * A receipt: up to where it had been known before. Once everybody is known, whoever is not among them has left, or was
   * never in it.
   */
  hear(userId: string, kind: "delivered" | "read", seq: number): number {
    if (userId === SYSTEM || (this.isComplete && !this.members.has(userId))) return seq;
    const known = this.members.get(userId) ?? { from: 0, delivered: 0, read: 0 };
    const before = known[kind];
    const delivered = Math.max(known.delivered, seq);
    this.members.set(userId, { ...known, delivered, read: kind === "read" ? Math.max(known.read, seq) : known.read });
    return before;
  }

  /**
   * They came, and see what is said from this place on. The server may have told of them before we heard of this; then
   * they stay as far as they are.
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

  /** How far one of ours at this place has come: read means by everybody who was there for it. */
  at(seq: number): Progress {
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
