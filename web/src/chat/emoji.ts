/** More than these are a text. */
const MOST = 3;

/** One emoji: a flag, a keycap, or a picture that is drawn as one. */
const EMOJI = /^(?:\p{RI}{2}|[0-9#*]\uFE0F\u20E3|(?:\p{Emoji_Presentation}|\p{Emoji}\uFE0F|\p{Extended_Pictographic}\p{EMod})[^\p{L}\p{N}\s]*)$/u;

/** Made once: that takes longer than using it. */
const letters = typeof Intl.Segmenter === "undefined" ? undefined : new Intl.Segmenter();

/** How many emoji a text is, if it is nothing else and they are few; else 0. */
export function emojiOnly(text: string): number {
  const trimmed = text.trim();
  // Nearly every text has letters, and every bubble that is drawn asks.
  if (trimmed === "" || trimmed.length > 64 || /\p{L}/u.test(trimmed) || letters === undefined) return 0;
  let many = 0;
  for (const { segment } of letters.segment(trimmed)) {
    if (/^\s+$/.test(segment)) continue;
    many += 1;
    if (many > MOST || !EMOJI.test(segment)) return 0;
  }
  return many;
}
