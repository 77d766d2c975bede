import { toCamel, toSnake } from "./casing.js";
import type { Http } from "./http.js";

export type JoinType = "open" | "approval" | "invite";
export type History = "joined" | "all";
/** The role of a member. Every group has one owner. */
export type Role = "owner" | "admin" | "member";

/** The roles by the numbers that HTTP uses. */
const ROLES: readonly Role[] = ["member", "admin", "owner"];

/** The profile of a group. */
export interface GroupProfile {
  name?: string;
  introduction?: string;
  announcement?: string;
  avatar?: string;
  extra?: string;
  joinType?: JoinType;
  history?: History;
}

/** A group; the optional fields are only set for its members. */
export interface Group extends Required<GroupProfile> {
  groupId: string;
  conversationId: string;
  creatorUserId: string;
  ownerUserId: string;
  memberCount: number;
  isMuted: boolean;
  /** A number of the app, set when the group is created. */
  groupType: number;
  /** It was dissolved or dismissed. */
  isEnded: boolean;
  createdAt: number;
  updatedAt: number;
  groupCode?: string;
  /** The number of pending join requests; only for the owner and admins. */
  joinRequestCount?: number;
  joinSeq?: number;
  myRole?: Role;
  mutedUntil?: number;
}

export interface Member {
  groupId: string;
  userId: string;
  nickname: string;
  avatar: string;
  /** Nickname and avatar in this group; empty if they are the same as everywhere. */
  groupNickname: string;
  groupAvatar: string;
  extra: string;
  role: Role;
  joinedAt: number;
  mutedUntil: number;
  inviterUserId?: string;
}

/** The cursors of a member. */
export interface MemberReadState {
  userId: string;
  /** The first message the member may see; earlier ones are not read, whatever `readSeq` is. */
  fromSeq: number;
  deliveredSeq: number;
  readSeq: number;
}

export interface JoinRequest {
  requestId: string;
  groupId: string;
  userId: string;
  message: string;
  createdAt: number;
}

/** A page of a list; pass `nextCursor` to get the next one. */
export interface Page<Item> {
  list: Item[];
  hasMore: boolean;
  nextCursor?: string;
  total?: number;
}

/** The result of joining. */
export interface Joined {
  groupId: string;
  status: "joined" | "pending";
  requestId?: string;
}

export interface Paging {
  limit?: number;
  cursor?: string;
}

/** Operations on groups. Members are notified by `change` events. */
export class Groups {
  constructor(
    private readonly http: Http,
    private readonly onGroup: (group: Group) => void,
  ) {}

  async create(
    profile: GroupProfile & { name: string; groupType?: number; memberIds?: string[] },
  ): Promise<Group> {
    return this.toGroup(await this.http.post<object>("/group/create", toSnake(profile)));
  }

  async get(groupId: string): Promise<Group> {
    return this.toGroup(await this.http.get<object>("/group/info", { group_id: groupId }));
  }

  /** The group with this join code. */
  async getByCode(code: string): Promise<Group> {
    return this.toGroup(await this.http.get<object>("/group/info", { group_code: code }));
  }

  async update(groupId: string, profile: GroupProfile): Promise<Group> {
    const body = { group_id: groupId, ...toSnake(profile) };
    return this.toGroup(await this.http.put<object>("/group/update", body));
  }

  /** The groups you are in. */
  joined(paging: Paging = {}): Promise<Page<Group>> {
    return this.page("/group/joined", paging, groupOf);
  }

  members(groupId: string, paging: Paging = {}): Promise<Page<Member>> {
    return this.page("/group/members", { group_id: groupId, ...paging }, memberOf);
  }

  async member(groupId: string, userId: string): Promise<Member> {
    const query = { group_id: groupId, user_id: userId };
    return memberOf(await this.http.get<object>("/group/member", query));
  }

  /** Changes your own profile in this group. */
  async setMemberInfo(
    groupId: string,
    profile: { groupNickname?: string; groupAvatar?: string; extra?: string },
  ): Promise<Member> {
    const body = { group_id: groupId, ...toSnake(profile) };
    return memberOf(await this.http.put<object>("/group/member_info", body));
  }

  /** The cursors of all members; `undefined` if the group is too large for receipts. */
  async readState(groupId: string): Promise<MemberReadState[] | undefined> {
    const query = { group_id: groupId };
    const state = await this.http.get<{ too_large: boolean; members: object[] }>("/group/read_state", query);
    return state.too_large ? undefined : state.members.map((one) => toCamel<MemberReadState>(one));
  }

  /** Joins by id or by code. `pending` until an admin decides. */
  async join(group: { groupId: string } | { code: string }, message?: string): Promise<Joined> {
    const which = "code" in group ? { group_code: group.code } : { group_id: group.groupId };
    const body = { ...which, ...(message !== undefined && { message }) };
    return toCamel(await this.http.post<object>("/group/join", body));
  }

  /** The pending join requests. */
  requests(groupId: string, paging: Paging = {}): Promise<Page<JoinRequest>> {
    const query = { group_id: groupId, ...paging };
    return this.page("/group/join_requests", query, (item) => toCamel<JoinRequest>(item));
  }

  async decide(requestId: string, isAccepted: boolean): Promise<void> {
    await this.http.post("/group/join_decide", { request_id: requestId, accept: isAccepted });
  }

  /** Adds users; returns those who were not members before. */
  async invite(groupId: string, userIds: string[]): Promise<string[]> {
    const body = { group_id: groupId, user_ids: userIds };
    return (await this.http.post<{ joined: string[] }>("/group/invite", body)).joined;
  }

  async leave(groupId: string): Promise<void> {
    await this.http.post("/group/leave", { group_id: groupId });
  }

  async kick(groupId: string, userId: string): Promise<void> {
    await this.http.post("/group/kick", { group_id: groupId, user_id: userId });
  }

  async setRole(groupId: string, userId: string, role: Exclude<Role, "owner">): Promise<void> {
    const body = { group_id: groupId, user_id: userId, role: ROLES.indexOf(role) };
    await this.http.post("/group/set_role", body);
  }

  async transfer(groupId: string, userId: string): Promise<void> {
    await this.http.post("/group/transfer", { group_id: groupId, user_id: userId });
  }

  /** Mutes a member for `seconds`: -1 for ever, 0 unmutes. */
  async mute(groupId: string, userId: string, seconds: number): Promise<void> {
    await this.http.post("/group/mute", { group_id: groupId, user_id: userId, seconds });
  }

  /** Lets only the owner and admins post, or everybody again. */
  async muteAll(groupId: string, isMuted: boolean): Promise<void> {
    await this.http.post("/group/mute_all", { group_id: groupId, on: isMuted });
  }

  /** Replaces the join code; returns the new one. */
  async resetCode(groupId: string): Promise<string> {
    const body = { group_id: groupId };
    return (await this.http.post<{ group_code: string }>("/group/reset_code", body)).group_code;
  }

  /** Dissolves the group; members keep its messages. */
  async dissolve(groupId: string): Promise<void> {
    await this.http.post("/group/dissolve", { group_id: groupId });
  }

  /** Dissolves the group and deletes its profile. */
  async dismiss(groupId: string): Promise<void> {
    await this.http.post("/group/dismiss", { group_id: groupId });
  }

  private toGroup(answer: object): Group {
    const group = groupOf(answer);
    this.onGroup(group);
    return group;
  }

  private async page<Item extends object>(
    path: string,
    query: object,
    itemOf: (item: object) => Item,
  ): Promise<Page<Item>> {
    const answer = await this.http.get<{ list: object[] }>(path, { ...query });
    return { ...toCamel<Page<Item>>(answer), list: answer.list.map((item) => itemOf(item)) };
  }
}

function groupOf(answer: object): Group {
  const { status, myRole, ...rest } = toCamel<Omit<Group, "myRole"> & { status: number; myRole?: number }>(answer);
  const role = myRole === undefined ? undefined : ROLES[myRole];
  return { ...rest, isEnded: status === 1, ...(role && { myRole: role }) };
}

function memberOf(answer: object): Member {
  const { roleLevel, status: _, ...rest } = toCamel<Member & { roleLevel: number; status?: number }>(answer);
  return { ...rest, role: ROLES[roleLevel] ?? "member" };
}
