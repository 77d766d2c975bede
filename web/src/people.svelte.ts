import type { Presence } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { later } from "./later.ts";
import { client, session } from "./session.svelte.ts";
import { SYSTEM } from "./system.ts";
import { t } from "./texts/t.svelte.ts";

/** What is known of somebody. */
interface Person {
  nickname: string;
  avatar: string;
}

/** So many are asked for at a time. */
const AT_ONCE = 4;
const PRESENCE_MS = 20_000;

/** Names, pictures and who is here. Asking for somebody unknown brings them a moment later. */
class People {
  private readonly known = new SvelteMap<string, Person>();
  private readonly present = new SvelteMap<string, Presence>();
  private readonly asked = new Set<string>();
  private readonly waiting: string[] = [];
  private busy = 0;
  /** Whose presence somebody looks at. */
  private readonly watched = new Map<string, number>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor() {
    // Whoever does something is here, whatever was heard before.
    const soon = later(() => void this.look(), 300);
    const stirs = (id: string) => {
      if (this.watched.has(id) && this.present.get(id)?.online !== true) soon();
    };
    client.on("message", ({ from, at }) => Date.now() - at < PRESENCE_MS && stirs(from));
    client.on("receipt", ({ userId }) => stirs(userId));
    client.on("person", ({ userId, nickname, avatar }) => this.learn(userId, { nickname, avatar }));
    client.on("typing", ({ userId }) => stirs(userId));
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

  /** Somebody told us. */
  learn(id: string, person: Person): void {
    this.asked.add(id);
    const before = this.known.get(id);
    if (before?.nickname === person.nickname && before.avatar === person.avatar) return;
    this.known.set(id, { nickname: person.nickname, avatar: person.avatar });
  }

  /** Keeps an eye on these until the answer is called. */
  watch(ids: readonly string[]): () => void {
    for (const id of ids) this.watched.set(id, (this.watched.get(id) ?? 0) + 1);
    this.timer ??= setInterval(() => void this.look(), PRESENCE_MS);
    const unknown = ids.filter((id) => !this.present.has(id));
    if (unknown.length > 0) void this.look(unknown);
    return () => {
      for (const id of ids) {
        const many = (this.watched.get(id) ?? 1) - 1;
        if (many === 0) this.watched.delete(id);
        else this.watched.set(id, many);
      }
    };
  }

  /** Asks who is here; at most a hundred at a time are told. */
  async look(ids: readonly string[] = [...this.watched.keys()]): Promise<void> {
    if (document.hidden || session.link.name !== "online") return;
    for (let at = 0; at < ids.length; at += 100) {
      const found = await client.people.presence(ids.slice(at, at + 100)).catch(() => []);
      for (const one of found) {
        const before = this.present.get(one.userId);
        if (before?.online !== one.online || before.lastSeenAt !== one.lastSeenAt) {
          this.present.set(one.userId, one);
        }
      }
    }
  }

  /** Asks anew who these are; nothing changes for those who cannot be asked. */
  refresh(ids: readonly string[]): void {
    for (const id of ids) {
      if (id === SYSTEM || this.waiting.includes(id)) continue;
      this.asked.add(id);
      this.waiting.push(id);
    }
    queueMicrotask(() => void this.ask());
  }

  private find(id: string): Person | undefined {
    const person = this.known.get(id);
    if (person === undefined && id !== "" && id !== SYSTEM && !this.asked.has(id)) {
      this.asked.add(id);
      this.waiting.push(id);
      queueMicrotask(() => void this.ask());
    }
    return person;
  }

  private async ask(): Promise<void> {
    if (this.busy >= AT_ONCE) return;
    const id = this.waiting.shift();
    if (id === undefined) return;
    this.busy += 1;
    try {
      this.learn(id, await client.people.get(id));
    } catch {
      if (!this.known.has(id)) this.asked.delete(id); // the next look asks again
    }
    this.busy -= 1;
    void this.ask();
  }
}

export const people = new People();
