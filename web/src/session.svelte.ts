import { Client, type Reason, type State } from "nexo-sdk";
import { forgetDrafts } from "./drafts.ts";
import { shareRefresh, Tabs, TabStore } from "./tabs.ts";

/** Which page there is: none yet, signing in, why it ended, or the conversations. */
export type Page = "loading" | "entry" | "ended" | "desk";

const store = new TabStore();
const fetch = shareRefresh(store, (input, init) => {
  // Taking a message back outlives the page: who closes it at once has still said so.
  const keepalive = String(input).endsWith("/msg/recall");
  return globalThis.fetch(input, keepalive ? { ...init, keepalive } : init);
});

/** So many messages of a conversation stay here: more than anybody scrolls back, so none goes while it is looked at. */
const KEEP = 20_000;

/** The only connection of this page. */
export const client = new Client({ url: location.origin, store, fetch, keep: KEEP });

/** Who is here, and how it stands with the server. */
class Session {
  page = $state<Page>("loading");
  me = $state("");
  link = $state.raw<State>({ name: "connecting" });
  /** When the next try to connect comes; 0 if none is planned. */
  retryAt = $state(0);
  /** Why it ended. */
  reason = $state<Reason | "kicked">("session_invalid");
  private readonly tabs = new Tabs();
  /** While a password changes every sign-in ends; ours comes back at once. */
  private isChanging = false;

  async start(): Promise<void> {
    client.on("state", (state) => this.hear(state));
    this.tabs.hear((news) => {
      if (news.kind === "signedOut") this.leave();
      else if (this.me !== "" && news.userId !== this.me) this.restart();
      else if (this.page !== "desk") void this.resume();
    });
    await this.resume();
  }

  async login(userId: string, password: string): Promise<void> {
    await client.login(userId, password);
    this.enter();
    this.tabs.tell({ kind: "signedIn", userId: this.me });
  }

  async logout(): Promise<void> {
    forgetDrafts(this.me);
    await client.logout();
    this.tabs.tell({ kind: "signedOut" });
    this.restart();
  }

  async changePassword(oldPassword: string, newPassword: string): Promise<void> {
    const { me } = this;
    this.isChanging = true;
    try {
      await client.changePassword(oldPassword, newPassword);
      // It is changed, whatever comes now: who cannot come back at once signs in with the new one.
      await this.login(me, newPassword).catch(() => this.end("session_invalid"));
    } finally {
      this.isChanging = false;
    }
  }

  /** Everything on a page belongs to one person; for another one it is made anew. */
  restart(): void {
    history.replaceState(null, "", "/");
    location.reload();
  }

  /** Goes on with the sign-in of this browser, whoever made it. */
  async resume(): Promise<void> {
    client.close(); // an ended sign-in would count as one that is there
    const isHere = await client.resume();
    if (isHere) this.enter();
    else if (this.page === "loading") this.page = "entry";
  }

  private enter(): void {
    const me = client.me ?? "";
    if (this.me !== "" && me !== this.me) return this.restart();
    this.me = me;
    this.page = "desk";
  }

  private leave(): void {
    if (this.page === "desk" || this.page === "ended") this.restart();
  }

  private hear(state: State): void {
    if (this.isChanging && (state.name === "signedOut" || state.name === "kicked")) return;
    this.link = state;
    const waitMs = state.name === "offline" ? state.retryInMs : undefined;
    this.retryAt = waitMs === undefined ? 0 : Date.now() + waitMs;
    if (this.page !== "desk") return;
    if (state.name === "kicked") this.end("kicked");
    if (state.name === "signedOut" && state.reason !== "logout") this.end(state.reason);
  }

  private end(reason: Reason): void {
    this.reason = reason;
    this.page = "ended";
  }
}

export const session = new Session();
