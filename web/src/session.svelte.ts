import { Client, type Reason, type State } from "nexo-sdk";
import { forgetDrafts } from "./drafts.ts";
import { shareRefresh, Tabs, TabStore } from "./tabs.ts";

/** The page shown: loading, sign-in, why the sign-in ended, or the conversations. */
export type Page = "loading" | "signIn" | "ended" | "workspace";

const store = new TabStore();
const fetch = shareRefresh(store, (input, init) => {
  // A recall is sent even if the page is closed at once.
  const keepalive = String(input).endsWith("/msg/recall");
  return globalThis.fetch(input, keepalive ? { ...init, keepalive } : init);
});

/**
 * This many messages of a conversation stay in memory: more than users scroll back, so none is dropped while
 * visible.
 */
const KEEP_MESSAGES = 20_000;

/** The client of this page. */
export const client = new Client({ url: location.origin, store, fetch, keep: KEEP_MESSAGES });

/** The signed-in user and the state of the connection. */
class Session {
  page = $state<Page>("loading");
  me = $state("");
  link = $state.raw<State>({ name: "connecting" });
  /** When the next connection attempt starts; 0 if none is planned. */
  retryAt = $state(0);
  /** Why the sign-in ended. */
  reason = $state<Reason | "kicked">("session_invalid");
  private readonly tabs = new Tabs();
  /** Changing the password ends every sign-in; this page signs in again at once. */
  private isChanging = false;

  async start(): Promise<void> {
    client.on("state", (state) => this.onState(state));
    this.tabs.onMessage((message) => {
      if (message.kind === "signedOut") this.leave();
      else if (this.me !== "" && message.userId !== this.me) this.restart();
      else if (this.page !== "workspace") void this.resume();
    });
    await this.resume();
  }

  async login(userId: string, password: string): Promise<void> {
    await client.login(userId, password);
    this.enter();
    this.tabs.broadcast({ kind: "signedIn", userId: this.me });
  }

  async logout(): Promise<void> {
    forgetDrafts(this.me);
    await client.logout();
    this.tabs.broadcast({ kind: "signedOut" });
    this.restart();
  }

  async changePassword(oldPassword: string, newPassword: string): Promise<void> {
    const { me } = this;
    this.isChanging = true;
    try {
      await client.changePassword(oldPassword, newPassword);
      // The password is changed even if this login fails: then the user signs in with the new one.
      await this.login(me, newPassword).catch(() => this.end("session_invalid"));
    } finally {
      this.isChanging = false;
    }
  }

  /** All state of a page belongs to one user, so another user gets a new page. */
  restart(): void {
    history.replaceState(null, "", "/");
    location.reload();
  }

  /** Resumes the sign-in of this browser, from any tab. */
  async resume(): Promise<void> {
    client.close(); // `resume` would return an ended sign-in otherwise
    const isHere = await client.resume();
    if (isHere) this.enter();
    else if (this.page === "loading") this.page = "signIn";
  }

  private enter(): void {
    const me = client.me ?? "";
    if (this.me !== "" && me !== this.me) return this.restart();
    this.me = me;
    this.page = "workspace";
  }

  private leave(): void {
    if (this.page === "workspace" || this.page === "ended") this.restart();
  }

  private onState(state: State): void {
    if (this.isChanging && (state.name === "signedOut" || state.name === "kicked")) return;
    this.link = state;
    const waitMs = state.name === "offline" ? state.retryInMs : undefined;
    this.retryAt = waitMs === undefined ? 0 : Date.now() + waitMs;
    if (this.page !== "workspace") return;
    if (state.name === "kicked") this.end("kicked");
    if (state.name === "signedOut" && state.reason !== "logout") this.end(state.reason);
  }

  private end(reason: Reason): void {
    this.reason = reason;
    this.page = "ended";
  }
}

export const session = new Session();
