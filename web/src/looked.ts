const NAME = "nexo/looked-at";

/**
 * Lets the other tabs know that this one is looked at, while it is. A lock does that better than a
 * message: the browser takes it back when a tab dies. Pages without TLS have none, nor notifications.
 */
export function tellLooked(): void {
  let release: (() => void) | undefined;
  const hold = () =>
    new Promise<void>((done) => {
      if (document.hidden || release !== undefined) return done();
      release = done;
    });
  const look = () => {
    if (!document.hidden) return void navigator.locks?.request(NAME, { mode: "shared" }, hold);
    release?.();
    release = undefined;
  };
  document.addEventListener("visibilitychange", look);
  look();
}

/** Whether somebody looks at a tab of this site. */
export async function isLooked(): Promise<boolean> {
  if (!document.hidden) return true;
  const locks = await navigator.locks?.query();
  return locks?.held?.some(({ name }) => name === NAME) ?? false;
}
