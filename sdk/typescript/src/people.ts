import { toCamel, toSnake } from "./casing.js";
import type { Http } from "./http.js";
import { sameObject } from "./snapshot.js";

export interface User {
  readonly userId: string;
  readonly nickname: string;
  readonly avatar: string;
  readonly extra: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** When the profile last changed; milliseconds since 1970. */
  readonly updatedAt: number;
}

export interface NewUser {
  /** Optional: the server generates one. */
  userId?: string;
  nickname: string;
  password: string;
  avatar?: string;
  extra?: string;
  /** The code of an invite link, where the server asks for one. */
  invite?: string;
}

/** The fields of your own profile; absent ones stay. */
export interface Profile {
  nickname?: string;
  avatar?: string;
  extra?: string;
}

export interface Presence {
  readonly userId: string;
  readonly isOnline: boolean;
  readonly platforms: readonly string[];
  /** Milliseconds since 1970. */
  readonly lastSeenAt?: number;
}

/** The presence of a user, as HTTP returns it. */
export interface OnlineStatus {
  user_id: string;
  status: number;
  detail_platform_status?: Array<{ platform_name: string }>;
  last_seen_at?: number;
}

const KNOWN_MAX = 10_000;

/** The users this sign-in has loaded, each the same object until it changes. */
export class KnownPeople {
  private readonly users = new Map<string, User>();

  constructor(private readonly changed: () => void) {}

  get(userId: string): User | undefined {
    return this.users.get(userId);
  }

  store(answer: object): User {
    const fetched = toCamel<User>(answer);
    const before = this.users.get(fetched.userId);
    const now = sameObject(before, fetched);
    if (now === before) return now;
    this.users.delete(now.userId);
    this.users.set(now.userId, now);
    const [oldest] = this.users.keys();
    if (this.users.size > KNOWN_MAX && oldest !== undefined) this.users.delete(oldest);
    this.changed();
    return now;
  }

  /** Updates the nickname and avatar of a loaded user. */
  update(news: Pick<User, "userId" | "nickname" | "avatar">): void {
    const before = this.users.get(news.userId);
    if (before !== undefined) this.store({ ...before, ...news });
  }

  clear(): void {
    this.users.clear();
  }
}

/** User profiles and presence. */
export class People {
  constructor(
    private readonly http: Http,
    private readonly users: KnownPeople,
  ) {}

  /** Your own profile. */
  async me(): Promise<User> {
    return this.users.store(await this.http.get<object>("/user/info"));
  }

  /** Loads the profile of a user. The same object as before if nothing changed. */
  async get(userId: string): Promise<User> {
    return this.users.store(await this.http.get<object>("/user/info", { user_id: userId }));
  }

  /** The profile as last loaded, without a request. The same object until it changes. */
  known(userId: string): User | undefined {
    return this.users.get(userId);
  }

  /** Changes your own profile. */
  async update(profile: Profile): Promise<User> {
    return this.users.store(await this.http.put<object>("/user/update", toSnake(profile)));
  }

  /** The presence of up to 100 users, as far as you may see it. */
  async presence(userIds: readonly string[]): Promise<Presence[]> {
    const body = { user_ids: userIds };
    const found = await this.http.post<OnlineStatus[]>("/user/get_users_online_status", body);
    return found.map((one) => ({
      userId: one.user_id,
      isOnline: one.status === 1,
      platforms: one.detail_platform_status?.map((platform) => platform.platform_name) ?? [],
      ...(one.last_seen_at !== undefined && { lastSeenAt: one.last_seen_at }),
    }));
  }
}
