/** A piece of a text: plain text, a link or a mention. */
export type Part =
  | { kind: "text"; text: string }
  | { kind: "link"; text: string; href: string }
  | { kind: "mention"; text: string; isMe: boolean };

/** Characters that end a link: spaces, quotes, angle brackets, Chinese punctuation, direction marks. */
const OUT =
  "\\s<>\"'“”„‟‘’‚‛«»‹›" +
  "，。、；：！？｡､．（）［］｛｝《》〈〉「」『』【】〔〕〖〗｢｣＂＇" +
  "\\u200e\\u200f\\u061c\\u202a-\\u202e\\u2066-\\u2069";
/** A URL, a host that begins with www, or an e-mail address. */
const LINK = new RegExp(
  `https?://[^${OUT}]+` +
    `|(?<![\\p{L}\\p{N}@._/-])www\\.[^${OUT}]+` +
    "|(?<![\\p{L}\\p{N}._%+/-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\\.)+[A-Za-z]{2,24}(?![A-Za-z0-9-])",
  "giu",
);
const PAIRS: Record<string, string> = { ")": "(", "]": "[", "}": "{" };

/** Finds links and mentions. Only http, https and e-mail become links. */
export function partsOf(text: string, mentions: ReadonlyArray<{ word: string; isMe: boolean }> = []): Part[] {
  const parts: Part[] = [];
  let from = 0;
  for (const found of text.matchAll(LINK)) {
    const address = withoutTail(found[0]);
    const href = hrefOf(address);
    if (href === undefined) continue;
    parts.push(...named(text.slice(from, found.index), mentions));
    parts.push({ kind: "link", text: address, href });
    from = found.index + address.length;
  }
  parts.push(...named(text.slice(from), mentions));
  return parts;
}

/** Removes punctuation after a link, and closing brackets that were opened before it. */
function withoutTail(address: string): string {
  /** Closing brackets without an opening one, by kind. */
  const surplus: Record<string, number> = {};
  for (const [closing, opening] of Object.entries(PAIRS)) {
    surplus[closing] = address.split(closing).length - address.split(opening).length;
  }
  let end = address.length;
  for (; end > 0; end -= 1) {
    const last = address[end - 1]!;
    if (".,;:!?…".includes(last)) continue;
    if ((surplus[last] ?? 0) <= 0) break;
    surplus[last]! -= 1;
  }
  return address.slice(0, end);
}

function hrefOf(address: string): string | undefined {
  if (!/^(https?:\/\/|www\.)/i.test(address)) return `mailto:${address}`;
  const isShort = !/^http/i.test(address);
  try {
    const { protocol, hostname } = new URL(isShort ? `https://${address}` : address);
    if (!/^https?:$/.test(protocol) || (isShort && !/^www\.[^.]+\.[^.]/i.test(hostname))) return undefined;
    return isShort ? `https://${address}` : address;
  } catch {
    return undefined;
  }
}

function named(text: string, mentions: ReadonlyArray<{ word: string; isMe: boolean }>): Part[] {
  if (text === "") return [];
  // Longest first: one name may be a prefix of another.
  const words = mentions.filter(({ word }) => word.length > 1);
  words.sort((a, b) => b.word.length - a.word.length);
  for (const { word, isMe } of words) {
    const at = text.indexOf(word);
    if (at < 0) continue;
    return [
      ...named(text.slice(0, at), mentions),
      { kind: "mention", text: word, isMe },
      ...named(text.slice(at + word.length), mentions),
    ];
  }
  return [{ kind: "text", text }];
}

/** The text after an @ before the caret, if a mention is being typed. */
export function mentionAt(text: string, caret: number): { from: number; query: string } | undefined {
  const before = text.slice(0, caret);
  const from = before.lastIndexOf("@");
  if (from < 0 || caret - from > 40) return undefined;
  if (from > 0 && /[A-Za-z0-9]/.test(before[from - 1]!)) return undefined; // an e-mail address
  const query = before.slice(from + 1);
  return /[\n@]|\s\s|^\s/.test(query) ? undefined : { from, query };
}
