import { toCamel, toSnake } from "./casing.js";
import type { Http } from "./http.js";

export type JoinType = "open" | "approval" | "invite";
export type History = "joined" | "all";

/** What one may say about a group. */
export interface GroupProfile {
  name?: string;
  introduction?: string;
  announcement?: string;
  avatar?: string;
  extra?: string;
  joinType?: JoinType;
  history?: History;
}

/** A group; the last fields only for its members. */
export interface Group extends Required<GroupProfile> {
  groupId: string;
  conversationId: string;
  creatorUserId: string;
  ownerUserId: string;
  memberCount: number;
  isMuted: boolean;
  /** A number of the app's own, chosen when it was made. */
  groupType: number;
  /** 0 normal, 1 ended. */
  status: number;
  createdAt: number;
  updatedAt: number;
  groupCode?: string;
  /** How many wait; only for those who decide. */
  joinRequestCount?: number;
  joinSeq?: number;
  /** 0 member, 1 admin, 2 owner. */
  myRole?: 0 | 1 | 2;
  mutedUntil?: number;
}

export interface Member {
  groupId: string;
  userId: string;
  nickname: string;
  avatar: string;
  /** How they want to be seen in this group; empty: as everywhere. */
  groupNickname: string;
  groupAvatar: string;
  extra: string;
  /** 0 member, 1 admin, 2 owner. */
  roleLevel: 0 | 1 | 2;
  joinedAt: number;
  mutedUntil: number;
  inviterUserId?: string;
}

/** How far a member has come. */
export interface MemberReadState {
  userId: string;
  /** The first message they were there for: they have not read what was said before, whatever `readSeq` is. */
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

/** A page of a list; give `nextCursor` to get the next one. */
export interface Page<Item> {
  list: Item[];
  hasMore: boolean;
  nextCursor?: string;
  total?: number;
}

/** What became of asking to join. */
export interface Joined {
  groupId: string;
  status: "joined" | "pending";
  requestId?: string;
}

export interface Paging {
  limit?: number;
  cursor?: string;
}

/** Everything that is done to groups. Members hear of it as `change` events. */
export class Groups {
  constructor(
    private readonly http: Http,
    private readonly learn: (group: Group) => void,
  ) {}

  async create(
    profile: GroupProfile & { name: string; groupType?: number; memberIds?: string[] },
  ): Promise<Group> {
    return this.told(await this.http.post<object>("/group/create", toSnake(profile)));
  }

  async get(groupId: string): Promise<Group> {
    return this.told(await this.http.get<object>("/group/info", { group_id: groupId }));
  }

  /** The group that a code leads to. */
  async getByCode(code: string): Promise<Group> {
    return this.told(await this.http.get<object>("/group/info", { group_code: code }));
  }

  async update(groupId: string, profile: GroupProfile): Promise<Group> {
    const body = { group_id: groupId, ...toSnake(profile) };
    return this.told(await this.http.put<object>("/group/update", body));
  }

  /** The groups you are in. */
  joined(paging: Paging = {}): Promise<Page<Group>> {
    return this.page("/group/joined", paging);
  }

  members(groupId: string, paging: Paging = {}): Promise<Page<Member>> {
    return this.page("/group/members", { group_id: groupId, ...paging });
  }

  async member(groupId: string, userId: string): Promise<Member> {
    const query = { group_id: groupId, user_id: userId };
    return toCamel(await this.http.get<object>("/group/member", query));
  }

  /** Says how you want to be seen in this group. */
  async setMemberInfo(
    groupId: string,
    profile: { groupNickname?: string; groupAvatar?: string; extra?: string },
  ): Promise<Member> {
    const body = { group_id: groupId, ...toSnake(profile) };
    return toCamel(await this.http.put<object>("/group/member_info", body));
  }

  /** How far everybody has received and read; undefined if the group is too large for receipts. */
  async readState(groupId: string): Promise<MemberReadState[] | undefined> {
    const query = { group_id: groupId };
    const state = await this.http.get<{ too_large: boolean; members: object[] }>("/group/read_state", query);
    return state.too_large ? undefined : state.members.map((one) => toCamel<MemberReadState>(one));
  }

  /** By its id or its code. `pending` until somebody decides. */
  async join(group: { groupId: string } | { code: string }, message?: string): Promise<Joined> {
    const which = "code" in group ? { group_code: group.code } : { group_id: group.groupId };
    const body = { ...which, ...(message !== undefined && { message }) };
    return toCamel(await this.http.post<object>("/group/join", body));
  }

  /** Who waits to be let in. */
  requests(groupId: string, paging: Paging = {}): Promise<Page<JoinRequest>> {
    return this.page("/group/join_requests", { group_id: groupId, ...paging });
  }

  async decide(requestId: string, accept: boolean): Promise<void> {
    await this.http.post("/group/join_decide", { request_id: requestId, accept });
  }

  /** Brings people in; those who were not in yet. */
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

  async setRole(groupId: string, userId: string, role: "member" | "admin"): Promise<void> {
    const level = role === "admin" ? 1 : 0;
    await this.http.post("/group/set_role", { group_id: groupId, user_id: userId, role: level });
  }

  async transfer(groupId: string, userId: string): Promise<void> {
    await this.http.post("/group/transfer", { group_id: groupId, user_id: userId });
  }

  /** -1 for ever, 0 ends it. */
  async mute(groupId: string, userId: string, seconds: number): Promise<void> {
    await this.http.post("/group/mute", { group_id: groupId, user_id: userId, seconds });
  }

  async muteAll(groupId: string, on: boolean): Promise<void> {
    await this.http.post("/group/mute_all", { group_id: groupId, on });
  }

  /** The new code. */
  async resetCode(groupId: string): Promise<string> {
    const body = { group_id: groupId };
    return (await this.http.post<{ group_code: string }>("/group/reset_code", body)).group_code;
  }

  /** Ends it; what was said stays. */
  async dissolve(groupId: string): Promise<void> {
    await this.http.post("/group/dissolve", { group_id: groupId });
  }

  /** Ends it and forgets its profile. */
  async dismiss(groupId: string): Promise<void> {
    await this.http.post("/group/dismiss", { group_id: groupId });
  }

  private told(answer: object): Group {
    const group = toCamel<Group>(answer);
    this.learn(group);
    return group;
  }

  private async page<Item extends object>(path: string, query: object): Promise<Page<Item>> {
    const answer = await this.http.get<{ list: object[] }>(path, { ...query });
    return { ...toCamel<Page<Item>>(answer), list: answer.list.map((item) => toCamel<Item>(item)) };
  }
}
