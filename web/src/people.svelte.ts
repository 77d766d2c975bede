import type { Presence } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { debounce } from "./debounce.ts";
import { client, session } from "./session.svelte.ts";
import { SYSTEM } from "./system.ts";
import { t } from "./texts/t.svelte.ts";

/** The loaded profile of a user. */
interface Person {
  nickname: string;
  avatar: string;
}

/** Concurrent requests. */
const CONCURRENT_MAX = 4;
const PRESENCE_MS = 20_000;

/** Nicknames, avatars and presence. Reading an unknown user loads the profile. */
class People {
  private readonly known = new SvelteMap<string, Person>();
  private readonly present = new SvelteMap<string, Presence>();
  private readonly requested = new Set<string>();
  private readonly waiting: string[] = [];
  private running = 0;
  /** Users whose presence is shown, and how often. */
  private readonly watched = new Map<string, number>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor() {
    // A user who sends, reads or types is online: the presence is loaded again.
    const soon = debounce(() => void this.loadPresence(), 300);
    const refreshIfAway = (id: string) => {
      if (this.watched.has(id) && this.present.get(id)?.isOnline !== true) soon();
    };
    client.on("message", ({ from, at }) => Date.now() - at < PRESENCE_MS && refreshIfAway(from));
    client.on("receipt", ({ userId }) => refreshIfAway(userId));
    client.on("person", ({ userId, nickname, avatar }) => this.update(userId, { nickname, avatar }));
    client.on("typing", ({ userId }) => refreshIfAway(userId));
  }

  name(id: string): string {
    if (id === SYSTEM) return t.system;
    return this.find(id)?.nickname || id;
  }

  avatar(id: string): string {
    return this.find(id)?.avatar ?? "";
  }

  presence(id: string): Presence | undefined {
    return this.present.get(id);
  }

  /** Stores a profile. */
  update(id: string, person: Person): void {
    this.requested.add(id);
    const before = this.known.get(id);
    if (before?.nickname === person.nickname && before.avatar === person.avatar) return;
    this.known.set(id, { nickname: person.nickname, avatar: person.avatar });
  }

  /** Keeps the presence of these users current until the returned function is called. */
  watch(ids: readonly string[]): () => void {
    for (const id of ids) this.watched.set(id, (this.watched.get(id) ?? 0) + 1);
    this.timer ??= setInterval(() => void this.loadPresence(), PRESENCE_MS);
    const unknown = ids.filter((id) => !this.present.has(id));
    if (unknown.length > 0) void this.loadPresence(unknown);
    return () => {
      for (const id of ids) {
        const count = (this.watched.get(id) ?? 1) - 1;
        if (count === 0) this.watched.delete(id);
        else this.watched.set(id, count);
      }
    };
  }

  /** Loads the presence of users, a hundred per request. */
  async loadPresence(ids: readonly string[] = [...this.watched.keys()]): Promise<void> {
    if (document.hidden || session.link.name !== "online") return;
    for (let at = 0; at < ids.length; at += 100) {
      const found = await client.people.presence(ids.slice(at, at + 100)).catch(() => []);
      for (const one of found) {
        const before = this.present.get(one.userId);
        if (before?.isOnline !== one.isOnline || before.lastSeenAt !== one.lastSeenAt) {
          this.present.set(one.userId, one);
        }
      }
    }
  }

  /** Loads these profiles again; those that fail stay as they are. */
  refresh(ids: readonly string[]): void {
    for (const id of ids) {
      if (id === SYSTEM || this.waiting.includes(id)) continue;
      this.requested.add(id);
      this.waiting.push(id);
    }
    queueMicrotask(() => void this.loadNext());
  }

  private find(id: string): Person | undefined {
    const person = this.known.get(id);
    if (person === undefined && id !== "" && id !== SYSTEM && !this.requested.has(id)) {
      this.requested.add(id);
      this.waiting.push(id);
      queueMicrotask(() => void this.loadNext());
    }
    return person;
  }

  private async loadNext(): Promise<void> {
    if (this.running >= CONCURRENT_MAX) return;
    const id = this.waiting.shift();
    if (id === undefined) return;
    this.running += 1;
    try {
      this.update(id, await client.people.get(id));
    } catch {
      if (!this.known.has(id)) this.requested.delete(id); // the next read retries
    }
    this.running -= 1;
    void this.loadNext();
  }
}

export const people = new People();
