/** Removes a listener. */
export type Off = () => void;

/** Event listeners. If one throws, the others are still called. */
export class Emitter<Events extends object> {
  private readonly listeners = new Map<keyof Events, Set<(event: never) => void>>();

  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): Off {
    const registered = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, registered);
    registered.add(listener);
    return () => void registered.delete(listener);
  }

  once<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): Off {
    const off = this.on(name, (event) => {
      off();
      listener(event);
    });
    return off;
  }

  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const listener of [...(this.listeners.get(name) ?? [])]) {
      try {
        (listener as (event: Events[Name]) => void)(event);
      } catch (error) {
        // An error in a listener of the app is rethrown on its own, outside of our call stack.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
