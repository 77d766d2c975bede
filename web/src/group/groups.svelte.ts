import { type Group, type JoinRequest, type Member, Refused, type Role } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { debounce } from "../debounce.ts";
import { people } from "../people.svelte.ts";
import { client, session } from "../session.svelte.ts";
import { memberProfiles } from "./memberProfiles.svelte.ts";

const PAGE = 100;
/** The most members per request, and the most that are searched for a name. */
const MEMBERS_MAX = 1_000;

/** The highest first. */
const ROLES: readonly Role[] = ["owner", "admin", "member"];

function isAbove(one: Role, other: Role): boolean {
  return ROLES.indexOf(one) < ROLES.indexOf(other);
}

/** The details and members of a group. */
export class GroupDetails {
  info = $state.raw<Group>();
  members = $state.raw<readonly Member[]>([]);
  requests = $state.raw<readonly JoinRequest[]>([]);
  total = $state(0);
  /** The group was dissolved; the server returns nothing more about it. */
  isOver = $state(false);
  private cursor: string | undefined;
  private isLoading = false;
  /** Set if the group changed during a load. */
  private reloadAgain = false;
  /** Whether all members are needed, to search for names. */
  private wantsAll = false;
  /** Roles of members that are not in the loaded pages. */
  private readonly roles = new Map<string, Role>();

  constructor(readonly id: string) {}

  get myRole(): Role {
    return this.info?.myRole ?? "member";
  }

  /** Whether we are the owner or an admin. */
  get isAdmin(): boolean {
    return this.myRole !== "member";
  }

  get hasMore(): boolean {
    return this.cursor !== undefined;
  }

  /** Whether we may remove or mute this member. */
  isBelow(member: Member): boolean {
    return member.userId !== session.me && isAbove(this.myRole, member.role);
  }

  /** Whether we may recall messages of this user. Users who left count as members. */
  async mayRecallOf(userId: string): Promise<boolean> {
    if (!this.isAdmin) return false;
    const known = this.members.find((one) => one.userId === userId)?.role ?? this.roles.get(userId);
    return isAbove(this.myRole, known ?? (await this.loadRole(userId)));
  }

  private async loadRole(userId: string): Promise<Role> {
    if (!this.hasMore && this.members.length > 0) return "member"; // all members are loaded, so the user has left
    try {
      const { role } = await client.groups.member(this.id, userId);
      this.roles.set(userId, role);
      return role;
    } catch (error) {
      const hasLeft = error instanceof Refused && error.reason === "target_not_member";
      return hasLeft ? "member" : "owner"; // unknown: the action is not offered
    }
  }

  async load(): Promise<void> {
    if (client.conversation({ groupId: this.id })?.isEnded) this.isOver = true;
    if (this.isOver) return;
    if (this.isLoading) {
      this.reloadAgain = true;
      return;
    }
    this.isLoading = true;
    this.reloadAgain = false;
    try {
      this.info = await client.groups.get(this.id);
      if (this.info.myRole === undefined) return;
      const limit = this.wantsAll ? MEMBERS_MAX : Math.min(Math.max(PAGE, this.members.length), MEMBERS_MAX);
      const page = await client.groups.members(this.id, { limit });
      this.roles.clear();
      this.setMembers([], page.list);
      this.cursor = page.nextCursor;
      this.total = page.total ?? page.list.length;
      const waiting = this.info.joinRequestCount ?? 0; // the owner and admins get it
      this.requests = waiting > 0 ? (await client.groups.requests(this.id)).list : [];
    } catch (error) {
      // Other errors: it is loaded again when it is opened or changes.
      this.isOver ||= error instanceof Refused && error.reason === "group_dissolved";
    } finally {
      this.isLoading = false;
    }
    if (this.reloadAgain) await this.load();
  }

  async more(): Promise<void> {
    const { cursor } = this;
    if (cursor === undefined) return;
    const page = await client.groups.members(this.id, { limit: PAGE, cursor });
    if (this.cursor !== cursor) return; // it was reloaded meanwhile
    this.setMembers(this.members, page.list);
    this.cursor = page.nextCursor;
  }

  /** Loads as many members as are searched for a name. */
  async loadAll(): Promise<void> {
    this.wantsAll = true;
    const isShort = this.members.length === 0 || (this.hasMore && this.members.length < MEMBERS_MAX);
    if (isShort) await this.load();
  }

  private setMembers(before: readonly Member[], list: Member[]): void {
    for (const one of list) {
      people.update(one.userId, one);
      memberProfiles.update(one);
    }
    const all = [...before, ...list];
    this.members = all.sort((a, b) => ROLES.indexOf(a.role) - ROLES.indexOf(b.role));
  }
}

/** The groups that were opened. */
class Groups {
  private readonly details = new Map<string, GroupDetails>();
  /** Groups with join requests since the page was opened. */
  private readonly withRequests = new SvelteMap<string, GroupDetails>();

  constructor() {
    client.on("change", ({ conversationId, kind }) => {
      const id = conversationId.slice("sg_".length);
      const group = this.details.get(id);
      if (group !== undefined && (kind === "dissolved" || kind === "dismissed")) group.isOver = true;
      else if (kind !== "recalled") this.reload(id);
    });
    client.on("joinRequest", ({ groupId }) => {
      this.reload(groupId);
      this.withRequests.set(groupId, this.open(groupId));
    });
  }

  /** The number of pending join requests this page knows of. */
  requestCount(id: string): number {
    return this.withRequests.get(id)?.requests.length ?? 0;
  }

  open(id: string): GroupDetails {
    let group = this.details.get(id);
    if (group === undefined) {
      group = new GroupDetails(id);
      this.details.set(id, group);
      void group.load();
    }
    return group;
  }

  private readonly reloads = new Map<string, () => void>();

  private reload(id: string): void {
    const group = this.details.get(id);
    if (group === undefined) return;
    let reload = this.reloads.get(id);
    if (reload === undefined) this.reloads.set(id, (reload = debounce(() => void group.load(), 150)));
    reload();
  }
}

export const groups = new Groups();
