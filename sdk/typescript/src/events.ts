/** Stops hearing an event. */
export type Off = () => void;

/** Who wants to hear what. An ear that throws does not make the others deaf. */
export class Emitter<Events extends object> {
  private readonly ears = new Map<keyof Events, Set<(event: never) => void>>();

  on<Name extends keyof Events>(name: Name, hear: (event: Events[Name]) => void): Off {
    const ears = this.ears.get(name) ?? new Set();
    this.ears.set(name, ears);
    ears.add(hear);
    return () => void ears.delete(hear);
  }

  once<Name extends keyof Events>(name: Name, hear: (event: Events[Name]) => void): Off {
    const off = this.on(name, (event) => {
      off();
      hear(event);
    });
    return off;
  }

  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const hear of [...(this.ears.get(name) ?? [])]) {
      try {
        (hear as (event: Events[Name]) => void)(event);
      } catch (error) {
        // It is the app's mistake, so the app hears of it, but not in the middle of our work.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
