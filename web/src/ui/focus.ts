import { tick } from "svelte";

/** Focuses `element` if what had the focus was removed, so that the keyboard stays near it. */
export async function focusIfLost(element: HTMLElement | undefined): Promise<void> {
  await tick();
  if (document.activeElement === null || document.activeElement === document.body) element?.focus();
}
