import { Backoff } from "./backoff.js";
import type { Cancel, Clock } from "./clock.js";
import type { Reason } from "./codes.js";
import type { TokenSource } from "./http.js";
import { endsSession, Refused } from "./refusal.js";
import type { Store } from "./storage.js";

/** The answer to a login or refresh. */
export interface Grant {
  token: string;
  refresh_token: string;
  expires_in: number;
  user_info: { user_id: string };
}

/** Tokens that the app's backend obtained, as the server answered it. */
export interface LoginTokens {
  userId: string;
  token: string;
  refreshToken: string;
  /** How long `token` is valid, in seconds from now. */
  expiresIn: number;
}

/** A sign-in as it is stored. */
interface Tokens {
  userId: string;
  token: string;
  refreshToken: string;
  /** By the clock of this device. */
  expiresAt: number;
  lifeMs: number;
}

const KEY = "session";
/**
 * Backoff after a refresh without an answer. The server may have consumed the refresh token; it repeats the
 * answer for a minute, so it is asked several times within that.
 */
const REFRESH_BACKOFF = { baseMs: 1_000, maxMs: 8_000 };

/**
 * How long an open socket may take to say why the sign-in has ended. A request that the server refuses for the same
 * reason may be answered before the socket is closed, and does not know whether another device took over.
 */
const CLOSE_WAIT_MS = 2_000;

/** Whether a refused refresh is final. */
function endsRefresh(reason: Reason): boolean {
  return reason === "invalid_refresh_token" || reason === "account_disabled";
}

/** The sign-in of this device: refreshes its tokens, one refresh at a time. */
export class SignIn implements TokenSource {
  private tokens: Tokens | undefined;
  private renewing: Promise<string> | undefined;
  private signInCount = 0;
  private deletion: Promise<void> | undefined;
  private renewalTimer: Cancel | undefined;
  /** Set when tokens are no longer refreshed. */
  private isStopped = false;
  private readonly refreshBackoff: Backoff;

  /** Called with a newer token, to reauthenticate the open socket. */
  onRenewed: (token: string) => void = () => {};
  /** Called when the sign-in has ended. */
  onEnded: (reason: Reason) => void = () => {};
  /** Whether a socket is open, which is about to say why the sign-in has ended. */
  hasSocket: () => boolean = () => false;

  constructor(
    private readonly clock: Clock,
    private readonly store: Store,
    private readonly refresh: (refreshToken: string) => Promise<Grant>,
  ) {
    this.refreshBackoff = new Backoff(clock, REFRESH_BACKOFF);
  }

  get signInNumber(): number {
    return this.signInCount;
  }

  get userId(): string | undefined {
    return this.tokens?.userId;
  }

  /** Loads the stored sign-in of an earlier run. */
  async resume(): Promise<boolean> {
    const stored = (await this.store.get(KEY)) as Tokens | undefined;
    this.begin();
    if (stored !== undefined) this.setTokens(stored);
    return stored !== undefined;
  }

  async take(grant: Grant): Promise<void> {
    this.begin();
    await this.save(grant);
  }

  async token(): Promise<string> {
    if (this.tokens === undefined) throw new Refused("missing_token");
    const { token, expiresAt } = this.tokens;
    return this.clock.now() < expiresAt ? token : this.renew(token);
  }

  /** Returns a token other than this one. Concurrent calls share one refresh. */
  renew(stale: string): Promise<string> {
    if (this.tokens !== undefined && this.tokens.token !== stale) {
      return Promise.resolve(this.tokens.token);
    }
    if (this.renewing !== undefined) return this.renewing;
    const renewing = this.renewNow().finally(() => {
      if (this.renewing === renewing) this.renewing = undefined;
    });
    this.renewing = renewing;
    return renewing;
  }

  refused(reason: Reason): void {
    if (!endsSession(reason)) return;
    const refused = this.tokens;
    if (refused === undefined || !this.hasSocket()) return this.end(reason);
    this.clock.after(CLOSE_WAIT_MS, () => {
      if (this.tokens === refused) this.end(reason);
    });
  }

  /** Ends the sign-in; reports the reason unless it was a logout. */
  end(reason?: Reason): void {
    const ended = this.tokens;
    if (ended === undefined) return;
    this.stop();
    this.tokens = undefined;
    // Being kicked in this tab does not sign out the other tabs that share the store; if the sign-in has
    // ended, the server refuses it when they resume.
    if (reason !== "kicked") this.deletion = this.deleteStored(ended);
    if (reason !== undefined) this.onEnded(reason);
  }

  /** Deletes these tokens from the store, unless another tab has stored newer ones. */
  private async deleteStored(ended: Tokens): Promise<void> {
    const stored = (await this.store.get(KEY)) as Tokens | undefined;
    if (stored?.refreshToken === ended.refreshToken) await this.store.delete(KEY);
  }

  /** Resolves when an ended sign-in is deleted from the store. */
  async whenDeleted(): Promise<void> {
    await this.deletion;
  }

  /** Stops refreshing the tokens. */
  stop(): void {
    this.isStopped = true;
    this.renewalTimer?.();
    this.renewalTimer = undefined;
  }

  /** Starts another sign-in: a refresh of the previous one no longer counts. */
  private begin(): void {
    this.signInCount += 1;
    this.renewing = undefined;
    this.isStopped = false;
  }

  private async save(grant: Grant): Promise<void> {
    const lifeMs = grant.expires_in * 1000;
    const tokens = {
      userId: grant.user_info.user_id,
      token: grant.token,
      refreshToken: grant.refresh_token,
      expiresAt: this.clock.now() + lifeMs,
      lifeMs,
    };
    this.setTokens(tokens);
    await this.store.set(KEY, tokens);
  }

  private async renewNow(): Promise<string> {
    const used = this.tokens;
    if (used === undefined) throw new Refused("missing_token");
    // Another tab with the same store may have refreshed already, or may do so during the request.
    const stored = await this.newerStored(used);
    this.assertCurrent(used);
    if (stored !== undefined && this.clock.now() < stored.expiresAt) this.setTokens(stored);
    else await this.refreshTokens(used, stored ?? used);
    const token = this.tokens?.token;
    if (token === undefined) throw new Refused("missing_token");
    this.onRenewed(token);
    return token;
  }

  private async refreshTokens(used: Tokens, latest: Tokens): Promise<void> {
    const answer = await this.refresh(latest.refreshToken).then(
      (grant) => ({ grant }),
      (error: unknown) => ({ error }),
    );
    this.assertCurrent(used);
    if ("grant" in answer) return this.save(answer.grant);
    const { error } = answer;
    if (!(error instanceof Refused) || !endsRefresh(error.reason)) {
      const wait = error instanceof Refused ? error.retryAfterMs : undefined;
      this.scheduleRenewal(this.refreshBackoff.next(wait)); // the caller may not retry soon
      throw error;
    }
    const newer = await this.newerStored(latest);
    this.assertCurrent(used);
    if (newer !== undefined) return this.setTokens(newer);
    this.end(error.reason);
    throw error;
  }

  /** The user may have signed out or in during the wait; then the answer must not be used. */
  private assertCurrent(used: Tokens): void {
    if (this.tokens !== used) throw new Refused("missing_token");
  }

  /** Newer tokens of the same user in the store. */
  private async newerStored(than: Tokens): Promise<Tokens | undefined> {
    const stored = (await this.store.get(KEY)) as Tokens | undefined;
    const isNewer = stored?.userId === than.userId && stored.refreshToken !== than.refreshToken;
    return isNewer ? stored : undefined;
  }

  private setTokens(tokens: Tokens): void {
    this.tokens = tokens;
    this.refreshBackoff.reset();
    // The server counts in whole seconds, so a token may expire a second early.
    const marginMs = Math.min(60_000, 1000 + tokens.lifeMs / 5);
    this.scheduleRenewal(Math.max(0, tokens.expiresAt - marginMs - this.clock.now()));
  }

  private scheduleRenewal(ms: number): void {
    this.renewalTimer?.();
    if (this.isStopped) return;
    // Timers are limited to 24 days.
    this.renewalTimer = this.clock.after(Math.min(ms, 2 ** 31 - 1), () => {
      if (this.tokens === undefined) return;
      this.renew(this.tokens.token).catch(() => {}); // the next attempt is scheduled
    });
  }
}
