import { type Group, type JoinRequest, type Member, Refused } from "nexo-sdk";
import { later } from "../later.ts";
import { people } from "../people.svelte.ts";
import { client, session } from "../session.svelte.ts";

const PAGE = 100;

/** A group as this page knows it. */
export class GroupDesk {
  info = $state.raw<Group>();
  members = $state.raw<readonly Member[]>([]);
  requests = $state.raw<readonly JoinRequest[]>([]);
  total = $state(0);
  /** It was dissolved; the server says nothing more about it. */
  isOver = $state(false);
  private cursor: string | undefined;
  private isLoading = false;

  constructor(readonly id: string) {}

  get myRole(): 0 | 1 | 2 {
    return this.info?.my_role ?? 0;
  }

  get isAdmin(): boolean {
    return this.myRole >= 1;
  }

  get hasMore(): boolean {
    return this.cursor !== undefined;
  }

  /** May this person be removed or muted by us? */
  isBelow(member: Member): boolean {
    return member.user_id !== session.me && this.myRole > member.role_level;
  }

  async load(): Promise<void> {
    if (this.isLoading || this.isOver) return;
    this.isLoading = true;
    try {
      this.info = await client.groups.info(this.id);
      if (this.info.my_role === undefined) return;
      const limit = Math.max(PAGE, this.members.length);
      const page = await client.groups.members(this.id, { limit: Math.min(limit, 1000) });
      this.take([], page.list);
      this.cursor = page.next_cursor;
      this.total = page.total ?? page.list.length;
      this.requests = this.isAdmin ? (await client.groups.requests(this.id)).list : [];
    } catch (error) {
      // Otherwise it is asked for again when somebody looks, or when the group changes.
      this.isOver = error instanceof Refused && error.reason === "group_dissolved";
    } finally {
      this.isLoading = false;
    }
  }

  async more(): Promise<void> {
    if (this.cursor === undefined) return;
    const page = await client.groups.members(this.id, { limit: PAGE, cursor: this.cursor });
    this.take(this.members, page.list);
    this.cursor = page.next_cursor;
  }

  private take(before: readonly Member[], list: Member[]): void {
    for (const one of list) people.learn(one.user_id, one);
    const all = [...before, ...list];
    this.members = all.sort((a, b) => b.role_level - a.role_level);
  }
}

/** The groups that were looked at. */
class Groups {
  private readonly desks = new Map<string, GroupDesk>();

  constructor() {
    client.on("change", ({ conversationId, kind }) => {
      const id = conversationId.slice("sg_".length);
      const desk = this.desks.get(id);
      if (desk !== undefined && (kind === "dissolved" || kind === "dismissed")) desk.isOver = true;
      else if (kind !== "recalled") this.reload(id);
    });
    client.on("joinRequest", ({ groupId }) => this.reload(groupId));
  }

  open(id: string): GroupDesk {
    let desk = this.desks.get(id);
    if (desk === undefined) {
      desk = new GroupDesk(id);
      this.desks.set(id, desk);
      void desk.load();
    }
    return desk;
  }

  private readonly reloads = new Map<string, () => void>();

  private reload(id: string): void {
    const desk = this.desks.get(id);
    if (desk === undefined) return;
    let soon = this.reloads.get(id);
    if (soon === undefined) this.reloads.set(id, (soon = later(() => void desk.load(), 150)));
    soon();
  }
}

export const groups = new Groups();
