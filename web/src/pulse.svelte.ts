import { client } from "./session.svelte.ts";

/** So often the server is asked whether it is there, while somebody looks. */
const EVERY_MS = 2_000;
/** So long an answer may take before it is said; with the pause before it less than 5 s. */
const SILENT_MS = 2_500;
/** So long before the connection is given up for a new one. */
const DEAD_MS = 10_000;

/**
 * Whether the network and the server are there. A connection whose other end is gone looks open for
 * minutes, so a page that somebody looks at asks every few seconds.
 */
class Pulse {
  /** The browser said that the network went away. */
  isOff = $state(false);
  /** The server owes an answer for too long. */
  isSilent = $state(false);
  private isAsking = false;

  start(): void {
    client.on("state", ({ name }) => {
      if (name === "online") this.isSilent = false;
    });
    addEventListener("offline", () => (this.isOff = true));
    addEventListener("online", () => {
      this.isOff = false;
      void this.ask();
    });
    document.addEventListener("visibilitychange", () => void this.ask());
    setInterval(() => void this.ask(), EVERY_MS);
  }

  private async ask(): Promise<void> {
    if (this.isAsking || document.hidden || client.state.name !== "online") return;
    this.isAsking = true;
    const silent = setTimeout(() => (this.isSilent = true), SILENT_MS);
    const dead = setTimeout(() => client.reconnect(), DEAD_MS);
    const isThere = await client.ping();
    clearTimeout(silent);
    clearTimeout(dead);
    this.isAsking = false;
    if (isThere) this.isSilent = false; // else until there is a new connection
  }
}

export const pulse = new Pulse();
