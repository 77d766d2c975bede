/** Copies a text. Pages without TLS have no clipboard of the new kind; the old way then. Whether it worked. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined && globalThis.isSecureContext) {
    const isDone = await navigator.clipboard.writeText(text).then(() => true, () => false);
    if (isDone) return true;
  }
  const before = document.activeElement as HTMLElement | null;
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true; // no keyboard comes up on phones
  area.className = "unseen";
  // What is behind a dialog cannot be selected while that is open.
  (before?.closest("dialog") ?? document.body).append(area);
  area.select();
  let isDone = false;
  try {
    isDone = document.execCommand("copy");
  } catch {
    // not allowed: whoever asked shows it selected
  }
  area.remove();
  before?.focus({ preventScroll: true });
  return isDone;
}

/** Selects what an element shows, so that one can copy it by hand. */
export function selectText(element: Element): void {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}
