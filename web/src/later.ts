/** Runs something a moment later, once for many calls; also in pages that are not drawn. */
export function later(run: () => void, ms = 16): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      run();
    }, ms);
  };
}
