import type { Off } from "./events.js";

/**
 * What an app reads is a snapshot: frozen, and the same object until something in it changes. These
 * two return the snapshot before if the new one holds the same, so that `===` tells whether it changed.
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

/** Read for every line of the list at every look: it makes nothing that has to be collected. */
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

/** Those who want to read again after a change; called once for all changes of the same moment. */
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
          // It is the app's mistake: it surfaces on its own, and the other listeners hear of the change.
          queueMicrotask(() => {
            throw error;
          });
        }
      }
    });
  }
}
