import type { Clock } from "./clock.js";
import type { SocketClass } from "./socket.js";
import type { Store } from "./storage.js";
import type { Timing } from "./timing.js";

export interface ClientOptions {
  /** The server, such as `https://chat.example.com`. */
  url: string;
  /** In Node before version 22: the class of the package `ws`. */
  webSocket?: SocketClass;
  fetch?: typeof globalThis.fetch;
  /** Where the sign-in and unsent messages survive a reload: IndexedDB in browsers, else memory. */
  store?: Store;
  /** 1 iOS, 2 Android, 3 Windows, 4 macOS, 5 Web (the default). */
  platform?: number;
  /** About this many messages of a conversation stay in memory; older ones are loaded again. */
  keep?: number;
  timing?: Partial<Timing>;
  clock?: Clock;
}
