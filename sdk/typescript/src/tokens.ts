import { Backoff } from "./backoff.js";
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
/**
 * After a refresh that nobody answered. The server may have used the token up, and gives the next one
 * again for a minute: so it is asked several times within that.
 */
const AGAIN = { baseMs: 1_000, maxMs: 8_000 };

/** The sign-in of this device: keeps its tokens fresh, one refresh at a time. */
export class SignIn implements TokenSource {
  private tokens: Tokens | undefined;
  private renewing: Promise<string> | undefined;
  private signIns = 0;
  private forgetting: Promise<void> | undefined;
  private cancel: Cancel | undefined;
  /** Nobody wants fresh tokens any more. */
  private isStopped = false;
  private readonly again: Backoff;

  /** There is a newer token: an open socket should carry on with it. */
  onRenewed: (token: string) => void = () => {};
  /** The sign-in is over. */
  onEnded: (reason: Reason) => void = () => {};

  constructor(
    private readonly clock: Clock,
    private readonly store: Store,
    private readonly refresh: (refreshToken: string) => Promise<Grant>,
  ) {
    this.again = new Backoff(clock, AGAIN);
  }

  get which(): number {
    return this.signIns;
  }

  get userId(): string | undefined {
    return this.tokens?.userId;
  }

  /** Takes the sign-in of an earlier run, if there is one. */
  async resume(): Promise<boolean> {
    const kept = (await this.store.get(KEY)) as Tokens | undefined;
    this.begin();
    if (kept !== undefined) this.hold(kept);
    return kept !== undefined;
  }

  async take(grant: Grant): Promise<void> {
    this.begin();
    await this.keep(grant);
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
    if (this.renewing !== undefined) return this.renewing;
    const renewing = this.renewNow().finally(() => {
      if (this.renewing === renewing) this.renewing = undefined;
    });
    this.renewing = renewing;
    return renewing;
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
    if (reason !== "kicked") this.forgetting = this.forget(ended);
    if (reason !== undefined) this.onEnded(reason);
  }

  /** Takes these out of the store, unless another tab has put others there. */
  private async forget(ended: Tokens): Promise<void> {
    const kept = (await this.store.get(KEY)) as Tokens | undefined;
    if (kept?.refreshToken === ended.refreshToken) await this.store.delete(KEY);
  }

  /** Nothing is left of a sign-in that has ended. */
  async forgotten(): Promise<void> {
    await this.forgetting;
  }

  /** Lets the tokens grow old. */
  stop(): void {
    this.isStopped = true;
    this.cancel?.();
    this.cancel = undefined;
  }

  /** Another sign-in: what the one before still waits for is no longer ours. */
  private begin(): void {
    this.signIns += 1;
    this.renewing = undefined;
    this.isStopped = false;
  }

  private async keep(grant: Grant): Promise<void> {
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

  private async renewNow(): Promise<string> {
    const used = this.tokens;
    if (used === undefined) throw new Refused("missing_token");
    // Another tab with the same store may have been first, or be while we ask.
    const kept = await this.newer(used);
    this.checkStill(used);
    if (kept !== undefined && this.clock.now() < kept.expiresAt) this.hold(kept);
    else await this.ask(used, kept ?? used);
    const token = this.tokens?.token;
    if (token === undefined) throw new Refused("missing_token");
    this.onRenewed(token);
    return token;
  }

  private async ask(used: Tokens, latest: Tokens): Promise<void> {
    const answer = await this.refresh(latest.refreshToken).then(
      (grant) => ({ grant }),
      (error: unknown) => ({ error }),
    );
    this.checkStill(used);
    if ("grant" in answer) return this.keep(answer.grant);
    const { error } = answer;
    if (!(error instanceof Refused) || error.reason !== "invalid_refresh_token") {
      const wait = error instanceof Refused ? error.retryAfterMs : undefined;
      this.plan(this.again.next(wait)); // whoever asked may ask much later
      throw error;
    }
    const newer = await this.newer(latest);
    this.checkStill(used);
    if (newer !== undefined) return this.hold(newer);
    this.end(error.reason);
    throw error;
  }

  /** Somebody may have signed out or in while we waited: then the answer is about nobody here. */
  private checkStill(used: Tokens): void {
    if (this.tokens !== used) throw new Refused("missing_token");
  }

  /** What the store has instead of these, of the same person. */
  private async newer(than: Tokens): Promise<Tokens | undefined> {
    const kept = (await this.store.get(KEY)) as Tokens | undefined;
    const isNewer = kept?.userId === than.userId && kept.refreshToken !== than.refreshToken;
    return isNewer ? kept : undefined;
  }

  private hold(tokens: Tokens): void {
    this.tokens = tokens;
    this.again.reset();
    // The server counts in whole seconds, so a token may die one earlier than it says.
    const marginMs = Math.min(60_000, 1000 + tokens.lifeMs / 5);
    this.plan(Math.max(0, tokens.expiresAt - marginMs - this.clock.now()));
  }

  private plan(ms: number): void {
    this.cancel?.();
    if (this.isStopped) return;
    // Timers do not take more than 24 days.
    this.cancel = this.clock.after(Math.min(ms, 2 ** 31 - 1), () => {
      if (this.tokens === undefined) return;
      this.renew(this.tokens.token).catch(() => {}); // it has planned the next try
    });
  }
}
