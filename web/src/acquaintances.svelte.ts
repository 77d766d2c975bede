import { SvelteSet } from "svelte/reactivity";
import { lines } from "./lines.svelte.ts";
import { people } from "./people.svelte.ts";
import { client, session } from "./session.svelte.ts";
import { SYSTEM } from "./system.ts";

/** So many groups are asked who is in them, so many members of each. */
const GROUPS = 30;
const MEMBERS = 200;
const FRESH_MS = 60_000;

/** The people one knows: those one has private chats with, and members of groups one is in. */
class Acquaintances {
  private readonly fromGroups = new SvelteSet<string>();
  private loadedAt = Number.NEGATIVE_INFINITY;

  /** Their ids: whom one talks with first, the latest on top, then others by name. */
  get all(): string[] {
    const peers = lines.all.flatMap((line) => line.peerId ?? []);
    const others = [...this.fromGroups].sort((a, b) => people.name(a).localeCompare(people.name(b)));
    return [...new Set([...peers, ...others])].filter((id) => id !== session.me && id !== SYSTEM);
  }

  /** Asks who is in the groups, one after the other. What cannot be asked is left out. */
  async load(): Promise<void> {
    if (Date.now() - this.loadedAt < FRESH_MS) return;
    this.loadedAt = Date.now();
    const groups = lines.all.flatMap((line) => (line.active ? (line.groupId ?? []) : [])).slice(0, GROUPS);
    for (const id of groups) {
      const page = await client.groups.members(id, { limit: MEMBERS }).catch(() => undefined);
      for (const member of page?.list ?? []) {
        people.learn(member.userId, member);
        this.fromGroups.add(member.userId);
      }
    }
  }
}

export const acquaintances = new Acquaintances();
