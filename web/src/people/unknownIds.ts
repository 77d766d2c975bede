import type { Texts } from "../texts/en.ts";

/** An error text that lists unknown ids. */
export function unknownIdsText(t: Texts, ids: readonly string[]): string {
  const names = ids.join(", ");
  return ids.length === 1 ? t.picker.unknown(names) : t.picker.unknownMany(names);
}
