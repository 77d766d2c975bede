import type { Cancel, Clock } from "./clock.js";
import type { Reason } from "./codes.js";
import type { TokenSource } from "./http.js";
import { endsSession, Refused } from "./refusal.js";
import type { Store } from "./storage.js";

/** What signing in gives. */
export interface Grant {
  token: string;
  refresh_token: string;
  expires_in: number;
  user_info: { user_id: string };
}

/** A sign-in as it is kept. */
interface Tokens {
  userId: string;
  token: string;
  refreshToken: string;
  /** By our own clock. */
  expiresAt: number;
  lifeMs: number;
}

const KEY = "session";
/** After a refresh that nobody answered. */
const AGAIN_MS = 5_000;

/** The sign-in of this device: keeps its tokens fresh, one refresh at a time. */
export class SignIn implements TokenSource {
  private tokens: Tokens | undefined;
  private renewing: Promise<string> | undefined;
  private cancel: Cancel | undefined;

  /** There is a newer token: an open socket should carry on with it. */
  onRenewed: (token: string) => void = () => {};
  /** The sign-in is over. */
  onEnded: (reason: Reason) => void = () => {};

  constructor(
    private readonly clock: Clock,
    private readonly store: Store,
    private readonly refresh: (refreshToken: string) => Promise<Grant>,
  ) {}

  get userId(): string | undefined {
    return this.tokens?.userId;
  }

  /** Takes the sign-in of an earlier run, if there is one. */
  async resume(): Promise<boolean> {
    const kept = (await this.store.get(KEY)) as Tokens | undefined;
    if (kept !== undefined) this.hold(kept);
    return kept !== undefined;
  }

  async take(grant: Grant): Promise<void> {
    const lifeMs = grant.expires_in * 1000;
    const tokens = {
      userId: grant.user_info.user_id,
      token: grant.token,
      refreshToken: grant.refresh_token,
      expiresAt: this.clock.now() + lifeMs,
      lifeMs,
    };
    this.hold(tokens);
    await this.store.set(KEY, tokens);
  }

  async token(): Promise<string> {
    if (this.tokens === undefined) throw new Refused("missing_token");
    const { token, expiresAt } = this.tokens;
    return this.clock.now() < expiresAt ? token : this.renew(token);
  }

  /** A token other than this one. Whoever asks meanwhile waits for the same answer. */
  renew(stale: string): Promise<string> {
    if (this.tokens !== undefined && this.tokens.token !== stale) {
      return Promise.resolve(this.tokens.token);
    }
    this.renewing ??= this.renewNow().finally(() => {
      this.renewing = undefined;
    });
    return this.renewing;
  }

  refused(reason: Reason): void {
    if (endsSession(reason)) this.end(reason);
  }

  /** Forgets the sign-in, and tells why unless it was our own wish. */
  end(reason?: Reason): void {
    const ended = this.tokens;
    if (ended === undefined) return;
    this.stop();
    this.tokens = undefined;
    // Whoever is put out here is not out in another tab: a sign-in that has ended is refused when it goes on.
    if (reason !== "kicked") void this.forget(ended);
    if (reason !== undefined) this.onEnded(reason);
  }

  /** Takes these out of the store, unless another tab has put others there. */
  private async forget(ended: Tokens): Promise<void> {
    const kept = (await this.store.get(KEY)) as Tokens | undefined;
    if (kept?.refreshToken === ended.refreshToken) await this.store.delete(KEY);
  }

  /** Lets the tokens grow old. */
  stop(): void {
    this.cancel?.();
    this.cancel = undefined;
  }

  private async renewNow(): Promise<string> {
    const used = this.tokens;
    if (used === undefined) throw new Refused("missing_token");
    // Another tab with the same store may have been first, or be while we ask.
    const kept = await this.newer(used);
    if (kept !== undefined && this.clock.now() < kept.expiresAt) this.hold(kept);
    else
      try {
        await this.take(await this.refresh((kept ?? used).refreshToken));
      } catch (error) {
        if (!(error instanceof Refused) || error.reason !== "invalid_refresh_token") throw error;
        const newer = await this.newer(kept ?? used);
        if (newer === undefined) {
          this.end(error.reason);
          throw error;
        }
        this.hold(newer);
      }
    const { token } = this.tokens as Tokens;
    this.onRenewed(token);
    return token;
  }

  /** What the store has instead of these, of the same person. */
  private async newer(than: Tokens): Promise<Tokens | undefined> {
    const kept = (await this.store.get(KEY)) as Tokens | undefined;
    const isNewer = kept?.userId === than.userId && kept.refreshToken !== than.refreshToken;
    return isNewer ? kept : undefined;
  }

  private hold(tokens: Tokens): void {
    this.tokens = tokens;
    // The server counts in whole seconds, so a token may die one earlier than it says.
    const marginMs = Math.min(60_000, 1000 + tokens.lifeMs / 5);
    this.plan(Math.max(0, tokens.expiresAt - marginMs - this.clock.now()));
  }

  private plan(ms: number): void {
    this.cancel?.();
    // Timers do not take more than 24 days.
    this.cancel = this.clock.after(Math.min(ms, 2 ** 31 - 1), () => {
      if (this.tokens === undefined) return;
      this.renew(this.tokens.token).catch(() => {
        if (this.tokens !== undefined) this.plan(AGAIN_MS);
      });
    });
  }
}
