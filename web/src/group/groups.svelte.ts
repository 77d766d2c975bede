import { type Group, type JoinRequest, type Member, Refused } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { later } from "../later.ts";
import { people } from "../people.svelte.ts";
import { client, session } from "../session.svelte.ts";
import { faces } from "./faces.svelte.ts";

const PAGE = 100;
/** So many the server gives at a time, and so many are looked through for a name. */
const MOST = 1_000;

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
  /** It changed while it was loaded. */
  private again = false;
  /** Somebody looks for names. */
  private wantsMany = false;
  /** What those may do who are not among the members here. */
  private readonly roles = new Map<string, Member["roleLevel"]>();

  constructor(readonly id: string) {}

  get myRole(): 0 | 1 | 2 {
    return this.info?.myRole ?? 0;
  }

  get isAdmin(): boolean {
    return this.myRole >= 1;
  }

  get hasMore(): boolean {
    return this.cursor !== undefined;
  }

  /** May this person be removed or muted by us? */
  isBelow(member: Member): boolean {
    return member.userId !== session.me && this.myRole > member.roleLevel;
  }

  /** May what this person said be taken back by us? Whoever has left counts as a member. */
  async mayRecallOf(userId: string): Promise<boolean> {
    if (!this.isAdmin) return false;
    const known = this.members.find((one) => one.userId === userId)?.roleLevel ?? this.roles.get(userId);
    return this.myRole > (known ?? (await this.askRole(userId)));
  }

  private async askRole(userId: string): Promise<Member["roleLevel"]> {
    if (!this.hasMore && this.members.length > 0) return 0; // everybody is here, so they are not
    try {
      const { roleLevel } = await client.groups.member(this.id, userId);
      this.roles.set(userId, roleLevel);
      return roleLevel;
    } catch (error) {
      const hasLeft = error instanceof Refused && error.reason === "target_not_member";
      return hasLeft ? 0 : 2; // who knows: then nothing is offered
    }
  }

  async load(): Promise<void> {
    if (client.conversation({ groupId: this.id })?.ended) this.isOver = true;
    if (this.isOver) return;
    if (this.isLoading) {
      this.again = true;
      return;
    }
    this.isLoading = true;
    this.again = false;
    try {
      this.info = await client.groups.get(this.id);
      if (this.info.myRole === undefined) return;
      const limit = this.wantsMany ? MOST : Math.min(Math.max(PAGE, this.members.length), MOST);
      const page = await client.groups.members(this.id, { limit });
      this.roles.clear();
      this.take([], page.list);
      this.cursor = page.nextCursor;
      this.total = page.total ?? page.list.length;
      this.requests = this.isAdmin ? (await client.groups.requests(this.id)).list : [];
    } catch (error) {
      // Otherwise it is asked for again when somebody looks, or when the group changes.
      this.isOver ||= error instanceof Refused && error.reason === "group_dissolved";
    } finally {
      this.isLoading = false;
    }
    if (this.again) await this.load();
  }

  async more(): Promise<void> {
    const { cursor } = this;
    if (cursor === undefined) return;
    const page = await client.groups.members(this.id, { limit: PAGE, cursor });
    if (this.cursor !== cursor) return; // it was loaded anew meanwhile
    this.take(this.members, page.list);
    this.cursor = page.nextCursor;
  }

  /** Brings as many members as one looks through for a name. */
  async everybody(): Promise<void> {
    this.wantsMany = true;
    const isShort = this.members.length === 0 || (this.hasMore && this.members.length < MOST);
    if (isShort) await this.load();
  }

  private take(before: readonly Member[], list: Member[]): void {
    for (const one of list) {
      people.learn(one.userId, one);
      faces.learn(one);
    }
    const all = [...before, ...list];
    this.members = all.sort((a, b) => b.roleLevel - a.roleLevel);
  }
}

/** The groups that were looked at. */
class Groups {
  private readonly desks = new Map<string, GroupDesk>();
  /** Those somebody asked to join since this page is open. */
  private readonly asked = new SvelteMap<string, GroupDesk>();

  constructor() {
    client.on("change", ({ conversationId, kind }) => {
      const id = conversationId.slice("sg_".length);
      const desk = this.desks.get(id);
      if (desk !== undefined && (kind === "dissolved" || kind === "dismissed")) desk.isOver = true;
      else if (kind !== "recalled") this.reload(id);
    });
    client.on("joinRequest", ({ groupId }) => {
      this.reload(groupId);
      this.asked.set(groupId, this.open(groupId));
    });
  }

  /** How many wait to be let in, as far as this page has heard. */
  waiting(id: string): number {
    return this.asked.get(id)?.requests.length ?? 0;
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
