import type { Texts } from "../texts/en.ts";

/** At most this many names are listed; the others are counted. */
const MOST = 5;

/** The names of these users as a notice lists them. It begins with "You" if `me` is among them. */
export function noticeNames(t: Texts, ids: readonly string[], me: string, nameOf: (id: string) => string): string {
  const others = ids.filter((id) => id !== me).map(nameOf);
  const names = ids.includes(me) ? [t.you, ...others] : others;
  const listed = (some: string[]) => some.reduce((list, name) => t.note.comma(list, name));
  if (names.length > MOST) return t.note.andMore(listed(names.slice(0, MOST)), names.length - MOST);
  const last = names.pop() ?? "";
  return names.length === 0 ? last : t.note.and(listed(names), last);
}
