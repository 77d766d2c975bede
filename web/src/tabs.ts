import { IndexedDbStore, type Store } from "nexo-sdk";
import { withTabLock } from "./tabLock.ts";

/** A sign-in as the SDK stores it. */
interface StoredSignIn {
  userId: string;
  token: string;
  refreshToken: string;
  expiresAt: number;
  lifeMs: number;
}

const SIGN_IN = "session";
/** A token with less time left is refreshed instead of taken over. */
const FRESH_MS = 1_000;

/**
 * The store that the tabs of a browser share. A tab sees only the sign-in of its own user, and deletes only
 * its own tokens: another tab may have signed in again.
 */
export class TabStore implements Store {
  private own: StoredSignIn | undefined;

  constructor(private readonly store: Store = new IndexedDbStore()) {}

  async get(key: string): Promise<unknown> {
    const value = await this.store.get(key);
    if (key !== SIGN_IN) return value;
    const stored = value as StoredSignIn | undefined;
    if (this.own !== undefined && stored?.userId !== this.own.userId) return undefined;
    this.own = stored;
    return stored;
  }

  async set(key: string, value: unknown): Promise<void> {
    if (key === SIGN_IN) this.own = value as StoredSignIn;
    await this.store.set(key, value);
  }

  async delete(key: string): Promise<void> {
    if (key === SIGN_IN) {
      const own = this.own;
      this.own = undefined;
      const stored = (await this.store.get(key)) as StoredSignIn | undefined;
      if (stored !== undefined && stored.token !== own?.token) return;
    }
    await this.store.delete(key);
  }

  list(prefix: string): Promise<Array<[string, unknown]>> {
    return this.store.list(prefix);
  }
}

/**
 * A refresh token works once, and using it again ends the sign-in for all tabs. So one tab at a time
 * refreshes: it first checks whether another tab has, and stores the new tokens before it releases the lock.
 */
export function shareRefresh(store: TabStore, fetch: typeof globalThis.fetch): typeof fetch {
  return (input, init) => {
    if (!String(input).endsWith("/auth/refresh")) return fetch(input, init);
    const refresh = async () => {
      const { refresh_token: requested } = JSON.parse(String(init?.body)) as { refresh_token: string };
      const stored = (await store.get(SIGN_IN)) as StoredSignIn | undefined;
      const isNewer = stored !== undefined && stored.refreshToken !== requested;
      if (isNewer && stored.expiresAt - Date.now() > FRESH_MS) return refreshResponse(stored);
      const refresh_token = stored?.refreshToken ?? requested;
      const response = await fetch(input, { ...init, body: JSON.stringify({ refresh_token }) });
      // Not stored if the user signed out or in meanwhile.
      const now = (await store.get(SIGN_IN)) as StoredSignIn | undefined;
      const isStill = stored !== undefined && now?.refreshToken === stored.refreshToken;
      if (response.ok && isStill) await store.set(SIGN_IN, await readGrant(response.clone()));
      return response;
    };
    return withTabLock("nexo/refresh", refresh, init?.signal ?? undefined);
  };
}

function refreshResponse(stored: StoredSignIn): Response {
  const data = {
    token: stored.token,
    refresh_token: stored.refreshToken,
    expires_in: (stored.expiresAt - Date.now()) / 1000,
    user_info: { user_id: stored.userId },
  };
  return Response.json({ code: 0, data });
}

async function readGrant(response: Response): Promise<StoredSignIn> {
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

export type TabMessage = { kind: "signedIn"; userId: string } | { kind: "signedOut" };

/** Messages between the tabs. */
export class Tabs {
  private readonly channel = new BroadcastChannel("nexo");

  onMessage(listener: (message: TabMessage) => void): void {
    this.channel.onmessage = (event: MessageEvent<TabMessage>) => listener(event.data);
  }

  broadcast(message: TabMessage): void {
    this.channel.postMessage(message);
  }
}
