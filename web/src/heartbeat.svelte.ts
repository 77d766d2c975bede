import { client } from "./session.svelte.ts";

/** How often the server is pinged while the page is visible. */
const PING_EVERY_MS = 2_000;
/**
 * How long an answer may take before the banner is shown: a multiple of the last answer's time, within limits.
 * With the ping interval that is 3 s on a usual connection, and less than 5 s on a slow one.
 */
const UNRESPONSIVE_MS = { times: 4, min: 1_000, max: 2_500 };
/** After this long without an answer the connection is replaced. */
const DEAD_MS = 10_000;

/**
 * Whether the network and the server respond. A dead connection looks open for minutes, so a visible page
 * pings every few seconds.
 */
class Heartbeat {
  /** The browser reported that the network is offline. */
  isNetworkOffline = $state(false);
  /** The server has not answered for too long. */
  isUnresponsive = $state(false);
  private isPinging = false;
  /** How long the last answer took. */
  private answerMs = UNRESPONSIVE_MS.max;

  start(): void {
    client.on("state", ({ name }) => {
      if (name === "online") this.isUnresponsive = false;
    });
    addEventListener("offline", () => (this.isNetworkOffline = true));
    addEventListener("online", () => {
      this.isNetworkOffline = false;
      void this.ping();
    });
    document.addEventListener("visibilitychange", () => void this.ping());
    setInterval(() => void this.ping(), PING_EVERY_MS);
  }

  private async ping(): Promise<void> {
    if (this.isPinging || document.hidden || client.state.name !== "online") return;
    this.isPinging = true;
    const { times, min, max } = UNRESPONSIVE_MS;
    const limitMs = Math.min(max, Math.max(min, times * this.answerMs));
    const silent = setTimeout(() => (this.isUnresponsive = true), limitMs);
    const sentAt = performance.now();
    const dead = setTimeout(() => client.reconnect(), DEAD_MS);
    const isAnswered = await client.ping();
    clearTimeout(silent);
    clearTimeout(dead);
    this.isPinging = false;
    if (!isAnswered) return; // the banner stays until there is a new connection
    this.isUnresponsive = false;
    this.answerMs = performance.now() - sentAt;
  }
}

export const heartbeat = new Heartbeat();
