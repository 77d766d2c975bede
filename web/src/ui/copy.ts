/**
 * Copies a text; returns whether it worked. Pages without TLS have no clipboard API: falls back to
 * `execCommand`.
 */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined && globalThis.isSecureContext) {
    const isDone = await navigator.clipboard.writeText(text).then(() => true, () => false);
    if (isDone) return true;
  }
  const before = document.activeElement as HTMLElement | null;
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true; // no keyboard opens on phones
  area.className = "unseen";
  // Elements behind an open dialog cannot be selected.
  (before?.closest("dialog") ?? document.body).append(area);
  area.select();
  let isDone = false;
  try {
    isDone = document.execCommand("copy");
  } catch {
    // not allowed: the caller selects the text instead
  }
  area.remove();
  before?.focus({ preventScroll: true });
  return isDone;
}

/** Selects the text of an element, to be copied by keyboard. */
export function selectText(element: Element): void {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}
