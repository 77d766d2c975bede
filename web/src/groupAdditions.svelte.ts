import { SvelteMap } from "svelte/reactivity";
import { read, write } from "./localStorage.ts";
import { client, session } from "./session.svelte.ts";

/** Who added the user to a group, and whether the user has opened it since. */
export interface GroupAddition {
  by: string;
  at: number;
  isSeen: boolean;
}

const KEEP_MAX = 100;

/** The groups another member added the user to, as stored on this device. */
class GroupAdditions {
  private readonly all = new SvelteMap<string, GroupAddition>();
  /** Groups the user asked to join: being added there is expected, no news. */
  private readonly expected = new Set<string>();
  private readonly listeners = new Set<(conversation: string, by: string, at: number) => void>();
  private owner = "";

  constructor() {
    $effect.root(() => {
      $effect(() => this.load(session.me));
    });
    client.on("change", ({ conversationId, kind, userIds, by, at }) => {
      const me = client.me ?? "";
      this.load(me); // the event may come before `session.me` is set
      const isNews = kind === "joined" && userIds.includes(me) && by !== me && !this.expected.has(conversationId);
      if (!isNews || at <= (this.all.get(conversationId)?.at ?? 0)) return;
      this.put(conversationId, { by, at, isSeen: false });
      for (const listener of this.listeners) listener(conversationId, by, at);
    });
    client.on("joinDecision", ({ groupId }) => this.expect(groupId));
  }

  /** Calls back for every group the user is added to. */
  on(listener: (conversation: string, by: string, at: number) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Records that the user asked to join this group. */
  expect(groupId: string): void {
    this.expected.add(`sg_${groupId}`);
    this.markSeen(`sg_${groupId}`);
  }

  /** Who added the user, until the user has opened the group. */
  by(conversation: string): string | undefined {
    const addition = this.all.get(conversation);
    return addition === undefined || addition.isSeen ? undefined : addition.by;
  }

  markSeen(conversation: string): void {
    const addition = this.all.get(conversation);
    if (addition !== undefined && !addition.isSeen) this.put(conversation, { ...addition, isSeen: true });
  }

  private load(me: string): void {
    if (me === "" || this.owner === me) return;
    this.owner = me;
    for (const [id, addition] of read<Array<[string, GroupAddition]>>(`added/${me}`) ?? []) this.all.set(id, addition);
  }

  private put(conversation: string, addition: GroupAddition): void {
    this.all.delete(conversation);
    this.all.set(conversation, addition);
    write(`added/${this.owner}`, [...this.all].slice(-KEEP_MAX));
  }
}

export const groupAdditions = new GroupAdditions();
