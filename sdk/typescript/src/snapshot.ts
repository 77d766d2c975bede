import type { Off } from "./events.js";

/**
 * The app reads snapshots: frozen, and the same object until something in it changes. These functions return
 * the previous snapshot if the new one is equal, so that `===` detects changes.
 */
export function sameObject<Value extends object>(before: Value | undefined, now: Value): Value {
  const isSame = before !== undefined && haveSameFields(before, now);
  return isSame ? before : Object.freeze(now);
}

export function sameArray<Item>(before: readonly Item[] | undefined, now: Item[]): readonly Item[] {
  const isSame = before !== undefined && haveSameItems(before, now);
  return isSame ? before : Object.freeze(now);
}

export function haveSameItems(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => Object.is(item, b[index]));
}

/** Called for every conversation at every read of the list, so it allocates nothing. */
function haveSameFields(a: object, b: object): boolean {
  const [before, now] = [a as Record<string, unknown>, b as Record<string, unknown>];
  let fields = 0;
  for (const name in now) {
    if (!(name in before) || !Object.is(before[name], now[name])) return false;
    fields += 1;
  }
  for (const _ in before) fields -= 1;
  return fields === 0;
}

/** Listeners called after changes, once for all changes of a moment. */
export class Subscribers {
  private readonly listeners = new Set<() => void>();
  private isPlanned = false;

  add(listener: () => void): Off {
    const own = () => listener(); // the same function may subscribe twice
    this.listeners.add(own);
    return () => void this.listeners.delete(own);
  }

  notify(): void {
    if (this.isPlanned) return;
    this.isPlanned = true;
    queueMicrotask(() => {
      this.isPlanned = false;
      for (const listener of [...this.listeners]) {
        try {
          listener();
        } catch (error) {
          // An error in a listener of the app is rethrown on its own, and the other listeners are still
          // called.
          queueMicrotask(() => {
            throw error;
          });
        }
      }
    });
  }
}
