/** The number of avatar colours. */
export const HUES = 8;

/** The same id always has the same colour. */
export function hueOf(id: string): number {
  let mixed = 0x811c9dc5;
  for (let at = 0; at < id.length; at += 1) mixed = Math.imul(mixed ^ id.charCodeAt(at), 0x01000193);
  return ((mixed ^ (mixed >>> 15) ^ (mixed >>> 24)) >>> 0) % HUES;
}

function letters(text: string): string[] {
  if (typeof Intl.Segmenter === "undefined") return [...text];
  return [...new Intl.Segmenter().segment(text)].map((one) => one.segment);
}

/** An avatar is one or two characters, such as an emoji; URLs are not loaded. */
export function pictureOf(avatar: string): string | undefined {
  if (avatar === "" || avatar.length > 16 || /[\w/:.<>]{3,}/.test(avatar)) return undefined;
  const found = letters(avatar.trim());
  return found.length >= 1 && found.length <= 2 ? found.join("") : undefined;
}

/** The initials of the first two words, or the first character of a Chinese name. */
export function initialsOf(name: string): string {
  const words = name.trim().split(/[\s._-]+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const first = words.map((word) => letters(word).find((one) => /[\p{L}\p{N}]/u.test(one)) ?? "");
  if (first.length === 0) return letters(name.trim())[0] ?? "?";
  const isWide = /[\u2e80-\u9fff\uac00-\ud7af]/.test(first[0]!);
  return first.slice(0, isWide ? 1 : 2).join("").toUpperCase();
}
