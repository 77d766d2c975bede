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
  join_type?: JoinType;
  history?: History;
}

/** A group; the last fields only for its members. */
export interface Group extends Required<GroupProfile> {
  group_id: string;
  conversation_id: string;
  creator_user_id: string;
  owner_user_id: string;
  member_count: number;
  is_muted: boolean;
  /** 0 normal, 1 ended. */
  status: number;
  created_at: number;
  updated_at: number;
  group_code?: string;
  /** How many wait; only for those who decide. */
  join_request_count?: number;
  join_seq?: number;
  /** 0 member, 1 admin, 2 owner. */
  my_role?: 0 | 1 | 2;
  muted_until?: number;
}

export interface Member {
  group_id: string;
  user_id: string;
  nickname: string;
  avatar: string;
  /** 0 member, 1 admin, 2 owner. */
  role_level: 0 | 1 | 2;
  joined_at: number;
  muted_until: number;
  inviter_user_id?: string;
}

export interface JoinRequest {
  request_id: string;
  group_id: string;
  user_id: string;
  message: string;
  created_at: number;
}

/** A page of a list; give `next_cursor` to get the next one. */
export interface Page<Item> {
  list: Item[];
  has_more: boolean;
  next_cursor?: string;
  total?: number;
}

interface Paging {
  limit?: number;
  cursor?: string;
}

/** Everything that is done to groups. Members hear of it as `change` events. */
export class Groups {
  constructor(private readonly http: Http) {}

  create(profile: GroupProfile & { name: string; member_ids?: string[] }): Promise<Group> {
    return this.http.post("/group/create", profile);
  }

  info(groupId: string): Promise<Group> {
    return this.http.get("/group/info", { group_id: groupId });
  }

  /** The group that a code leads to. */
  byCode(code: string): Promise<Group> {
    return this.http.get("/group/info", { group_code: code });
  }

  update(groupId: string, profile: GroupProfile): Promise<Group> {
    return this.http.put("/group/update", { group_id: groupId, ...profile });
  }

  joined(paging: Paging = {}): Promise<Page<Group>> {
    return this.http.get("/group/joined", { ...paging });
  }

  members(groupId: string, paging: Paging = {}): Promise<Page<Member>> {
    return this.http.get("/group/members", { group_id: groupId, ...paging });
  }

  member(groupId: string, userId: string): Promise<Member> {
    return this.http.get("/group/member", { group_id: groupId, user_id: userId });
  }

  /** By its id or its code. `pending` until somebody decides. */
  join(
    group: { groupId: string } | { code: string },
    message?: string,
  ): Promise<{ group_id: string; status: "joined" | "pending"; request_id?: string }> {
    const which = "code" in group ? { group_code: group.code } : { group_id: group.groupId };
    return this.http.post("/group/join", { ...which, ...(message !== undefined && { message }) });
  }

  /** Who waits to be let in. */
  requests(groupId: string, paging: Paging = {}): Promise<Page<JoinRequest>> {
    return this.http.get("/group/join_requests", { group_id: groupId, ...paging });
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
}
