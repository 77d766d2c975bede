import { IndexedDbStore, type Store } from "nexo-sdk";
import { alone } from "./alone.ts";

/** A sign-in as the SDK keeps it. */
interface Kept {
  userId: string;
  token: string;
  refreshToken: string;
  expiresAt: number;
  lifeMs: number;
}

const SIGN_IN = "session";
/** A token that lives shorter than this is not worth taking over. */
const FRESH_MS = 1_000;

/**
 * What the tabs of one browser share. A tab sees only the sign-in of the person it shows, and forgets
 * only the one it holds itself: another tab may have signed in anew meanwhile.
 */
export class TabStore implements Store {
  private held: Kept | undefined;

  constructor(private readonly store: Store = new IndexedDbStore()) {}

  async get(key: string): Promise<unknown> {
    const value = await this.store.get(key);
    if (key !== SIGN_IN) return value;
    const kept = value as Kept | undefined;
    if (this.held !== undefined && kept?.userId !== this.held.userId) return undefined;
    this.held = kept;
    return kept;
  }

  async set(key: string, value: unknown): Promise<void> {
    if (key === SIGN_IN) this.held = value as Kept;
    await this.store.set(key, value);
  }

  async delete(key: string): Promise<void> {
    if (key === SIGN_IN) {
      const held = this.held;
      this.held = undefined;
      const kept = (await this.store.get(key)) as Kept | undefined;
      if (kept !== undefined && kept.token !== held?.token) return;
    }
    await this.store.delete(key);
  }

  list(prefix: string): Promise<Array<[string, unknown]>> {
    return this.store.list(prefix);
  }
}

/**
 * A refresh token works once, and showing it again ends the sign-in for all tabs. So one tab at a time
 * refreshes, looks first whether another has done it, and leaves the new tokens before it lets go.
 */
export function shareRefresh(store: TabStore, fetch: typeof globalThis.fetch): typeof fetch {
  return (input, init) => {
    if (!String(input).endsWith("/auth/refresh")) return fetch(input, init);
    const refresh = async () => {
      const { refresh_token: given } = JSON.parse(String(init?.body)) as { refresh_token: string };
      const kept = (await store.get(SIGN_IN)) as Kept | undefined;
      const isNewer = kept !== undefined && kept.refreshToken !== given;
      if (isNewer && kept.expiresAt - Date.now() > FRESH_MS) return answerOf(kept);
      const refresh_token = kept?.refreshToken ?? given;
      const response = await fetch(input, { ...init, body: JSON.stringify({ refresh_token }) });
      // Whoever signed out or in meanwhile has no use for them.
      const now = (await store.get(SIGN_IN)) as Kept | undefined;
      const isStill = kept !== undefined && now?.refreshToken === kept.refreshToken;
      if (response.ok && isStill) await store.set(SIGN_IN, await keptOf(response.clone()));
      return response;
    };
    return alone("nexo/refresh", refresh, init?.signal ?? undefined);
  };
}

function answerOf(kept: Kept): Response {
  const data = {
    token: kept.token,
    refresh_token: kept.refreshToken,
    expires_in: (kept.expiresAt - Date.now()) / 1000,
    user_info: { user_id: kept.userId },
  };
  return Response.json({ code: 0, data });
}

async function keptOf(response: Response): Promise<Kept> {
  const { data } = (await response.json()) as {
    data: {
      token: string;
      refresh_token: string;
      expires_in: number;
      user_info: { user_id: string };
    };
  };
  const lifeMs = data.expires_in * 1000;
  return {
    userId: data.user_info.user_id,
    token: data.token,
    refreshToken: data.refresh_token,
    expiresAt: Date.now() + lifeMs,
    lifeMs,
  };
}

export type TabNews = { kind: "signedIn"; userId: string } | { kind: "signedOut" };

/** Tells the other tabs, and hears of them. */
export class Tabs {
  private readonly channel = new BroadcastChannel("nexo");

  hear(listen: (news: TabNews) => void): void {
    this.channel.onmessage = (event: MessageEvent<TabNews>) => listen(event.data);
  }

  tell(news: TabNews): void {
    this.channel.postMessage(news);
  }
}
