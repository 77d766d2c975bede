const NAME = "nexo/looked-at";

/**
 * Holds a shared lock while this tab is visible, so that other tabs know. A lock is better than a message:
 * the browser releases it when a tab dies. Pages without TLS have neither locks nor notifications.
 */
export function announceVisibility(): void {
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

/** Whether any tab of this site is visible. */
export async function isAnyTabVisible(): Promise<boolean> {
  if (!document.hidden) return true;
  const locks = await navigator.locks?.query();
  return locks?.held?.some(({ name }) => name === NAME) ?? false;
}
