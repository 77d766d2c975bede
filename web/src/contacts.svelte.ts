import { SvelteSet } from "svelte/reactivity";
import { conversations } from "./conversations.svelte.ts";
import { people } from "./people.svelte.ts";
import { client, session } from "./session.svelte.ts";
import { SYSTEM } from "./system.ts";

/** The members of this many groups are loaded, and this many of each. */
const GROUPS = 30;
const MEMBERS = 200;
const FRESH_MS = 60_000;

/** The user's contacts: peers of private chats, and members of the user's groups. */
class Contacts {
  private readonly fromGroups = new SvelteSet<string>();
  private loadedAt = Number.NEGATIVE_INFINITY;

  /** Their ids: peers first, the latest on top, then others by name. */
  get all(): string[] {
    const peers = conversations.all.flatMap((summary) => summary.peerId ?? []);
    const others = [...this.fromGroups].sort((a, b) => people.name(a).localeCompare(people.name(b)));
    return [...new Set([...peers, ...others])].filter((id) => id !== session.me && id !== SYSTEM);
  }

  /** Loads the members of the groups, one group after the other. Groups that fail are skipped. */
  async load(): Promise<void> {
    if (Date.now() - this.loadedAt < FRESH_MS) return;
    this.loadedAt = Date.now();
    const groups = conversations.all.flatMap((summary) => (summary.isActive ? (summary.groupId ?? []) : [])).slice(0, GROUPS);
    for (const id of groups) {
      const page = await client.groups.members(id, { limit: MEMBERS }).catch(() => undefined);
      for (const member of page?.list ?? []) {
        people.update(member.userId, member);
        this.fromGroups.add(member.userId);
      }
    }
  }
}

export const contacts = new Contacts();
