/** More emoji are shown as text. */
const MOST = 3;

/** One emoji: a flag, a keycap or a pictograph. */
const EMOJI = /^(?:\p{RI}{2}|[0-9#*]\uFE0F\u20E3|(?:\p{Emoji_Presentation}|\p{Emoji}\uFE0F|\p{Extended_Pictographic}\p{EMod})[^\p{L}\p{N}\s]*)$/u;

/** Created once: that takes longer than using it. */
const letters = typeof Intl.Segmenter === "undefined" ? undefined : new Intl.Segmenter();

/** The number of emoji if the text is only a few emoji; else 0. */
export function emojiOnly(text: string): number {
  const trimmed = text.trim();
  // A fast exit: nearly every text has letters, and this runs for every rendered bubble.
  if (trimmed === "" || trimmed.length > 64 || /\p{L}/u.test(trimmed) || letters === undefined) return 0;
  let many = 0;
  for (const { segment } of letters.segment(trimmed)) {
    if (/^\s+$/.test(segment)) continue;
    many += 1;
    if (many > MOST || !EMOJI.test(segment)) return 0;
  }
  return many;
}
