/**
 * Collects many calls into one run, `ms` after the first of them. A timer, since hidden pages get no
 * animation frames.
 */
export function debounce(run: () => void, ms = 16): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      run();
    }, ms);
  };
}
