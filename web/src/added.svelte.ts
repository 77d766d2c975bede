import { SvelteMap } from "svelte/reactivity";
import { read, write } from "./kept.ts";
import { client, session } from "./session.svelte.ts";

/** Who brought one into a group, and whether one has looked at it since. */
export interface Added {
  by: string;
  at: number;
  isSeen: boolean;
}

/** So many groups are remembered. */
const KEEP = 100;

/** The groups somebody else has brought one into, on this device. */
class AddedTo {
  private readonly all = new SvelteMap<string, Added>();
  /** Groups one asked for oneself: being let in is what one waited for. */
  private readonly wanted = new Set<string>();
  private readonly ears = new Set<(conversation: string, by: string, at: number) => void>();
  private owner = "";

  constructor() {
    $effect.root(() => {
      $effect(() => this.load(session.me));
    });
    client.on("change", ({ conversationId, kind, userIds, by, at }) => {
      const me = client.me ?? "";
      this.load(me); // it may come before the page knows who is here
      const isNews = kind === "joined" && userIds.includes(me) && by !== me && !this.wanted.has(conversationId);
      if (!isNews || at <= (this.all.get(conversationId)?.at ?? 0)) return;
      this.put(conversationId, { by, at, isSeen: false });
      for (const hear of this.ears) hear(conversationId, by, at);
    });
    client.on("joinDecision", ({ groupId }) => this.want(groupId));
  }

  /** Hears of every group one is brought into. */
  on(hear: (conversation: string, by: string, at: number) => void): () => void {
    this.ears.add(hear);
    return () => this.ears.delete(hear);
  }

  /** One asks to join this group. */
  want(groupId: string): void {
    this.wanted.add(`sg_${groupId}`);
    this.seen(`sg_${groupId}`);
  }

  /** Who brought one in, until one has looked. */
  by(conversation: string): string | undefined {
    const found = this.all.get(conversation);
    return found === undefined || found.isSeen ? undefined : found.by;
  }

  seen(conversation: string): void {
    const found = this.all.get(conversation);
    if (found !== undefined && !found.isSeen) this.put(conversation, { ...found, isSeen: true });
  }

  private load(me: string): void {
    if (me === "" || this.owner === me) return;
    this.owner = me;
    for (const [id, added] of read<Array<[string, Added]>>(`added/${me}`) ?? []) this.all.set(id, added);
  }

  private put(conversation: string, added: Added): void {
    this.all.delete(conversation);
    this.all.set(conversation, added);
    write(`added/${this.owner}`, [...this.all].slice(-KEEP));
  }
}

export const added = new AddedTo();
