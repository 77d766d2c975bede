import type { Texts } from "../texts/en.ts";

/** A sentence that names the ids nobody has. */
export function unknownIds(t: Texts, ids: readonly string[]): string {
  const names = ids.join(", ");
  return ids.length === 1 ? t.picker.unknown(names) : t.picker.unknownMany(names);
}
