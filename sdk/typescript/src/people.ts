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
}

export interface NewUser {
  /** Without one the server makes it. */
  userId?: string;
  nickname: string;
  password: string;
  avatar?: string;
  extra?: string;
}

/** What you may change of your own profile. */
export interface Profile {
  nickname?: string;
  avatar?: string;
  extra?: string;
}

export interface Presence {
  readonly userId: string;
  readonly online: boolean;
  readonly platforms: readonly string[];
  /** Milliseconds since 1970. */
  readonly lastSeenAt?: number;
}

interface Status {
  user_id: string;
  status: number;
  detail_platform_status?: Array<{ platform_name: string }>;
  last_seen_at?: number;
}

const KNOWN_MAX = 10_000;

/** The people this sign-in has asked for, each the same object until they change. */
export class KnownPeople {
  private readonly users = new Map<string, User>();

  constructor(private readonly changed: () => void) {}

  get(userId: string): User | undefined {
    return this.users.get(userId);
  }

  learn(answer: object): User {
    const told = toCamel<User>(answer);
    const before = this.users.get(told.userId);
    const now = sameObject(before, told);
    if (now === before) return now;
    this.users.delete(now.userId);
    this.users.set(now.userId, now);
    const [oldest] = this.users.keys();
    if (this.users.size > KNOWN_MAX && oldest !== undefined) this.users.delete(oldest);
    this.changed();
    return now;
  }

  /** Somebody who was asked for has a new name or picture. */
  hear(news: Pick<User, "userId" | "nickname" | "avatar">): void {
    const before = this.users.get(news.userId);
    if (before !== undefined) this.learn({ ...before, ...news });
  }

  clear(): void {
    this.users.clear();
  }
}

/** Who people are, and whether they are there. */
export class People {
  constructor(
    private readonly http: Http,
    private readonly users: KnownPeople,
  ) {}

  /** Your own profile. */
  async me(): Promise<User> {
    return this.users.learn(await this.http.get<object>("/user/info"));
  }

  /** Asks for somebody's profile. Whoever is unchanged is the same object as before. */
  async get(userId: string): Promise<User> {
    return this.users.learn(await this.http.get<object>("/user/info", { user_id: userId }));
  }

  /** The profile as it was asked for last, without asking. The same object until it changes. */
  known(userId: string): User | undefined {
    return this.users.get(userId);
  }

  /** Changes your own profile. */
  async update(profile: Profile): Promise<User> {
    return this.users.learn(await this.http.put<object>("/user/update", toSnake(profile)));
  }

  /** Who is online, of up to 100 people whom you may know about. */
  async presence(userIds: readonly string[]): Promise<Presence[]> {
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
