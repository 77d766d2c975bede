import type { Http } from "./http.js";

export interface User {
  user_id: string;
  nickname: string;
  avatar: string;
  extra: string;
  created_at: number;
}

export interface NewUser {
  /** Without one the server makes it. */
  user_id?: string;
  nickname: string;
  password: string;
  avatar?: string;
  extra?: string;
}

export interface Presence {
  userId: string;
  online: boolean;
  platforms: string[];
  lastSeenAt?: number;
}

interface Status {
  user_id: string;
  status: number;
  detail_platform_status?: Array<{ platform_name: string }>;
  last_seen_at?: number;
}

/** Who people are, and whether they are there. */
export class People {
  constructor(private readonly http: Http) {}

  me(): Promise<User> {
    return this.http.get("/user/info");
  }

  get(userId: string): Promise<User> {
    return this.http.get("/user/info", { user_id: userId });
  }

  /** Changes your own profile. */
  update(profile: { nickname?: string; avatar?: string; extra?: string }): Promise<User> {
    return this.http.put("/user/update", profile);
  }

  /** Who is online, of up to 100 people whom you may know about. */
  async presence(userIds: string[]): Promise<Presence[]> {
    const body = { user_ids: userIds };
    const found = await this.http.post<Status[]>("/user/get_users_online_status", body);
    return found.map((one) => ({
      userId: one.user_id,
      online: one.status === 1,
      platforms: one.detail_platform_status?.map((place) => place.platform_name) ?? [],
      ...(one.last_seen_at !== undefined && { lastSeenAt: one.last_seen_at }),
    }));
  }
}
