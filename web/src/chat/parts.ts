/** A piece of a text: words, an address one can follow, or somebody's name. */
export type Part =
  | { kind: "text"; text: string }
  | { kind: "link"; text: string; href: string }
  | { kind: "mention"; text: string; isMe: boolean };

const LINK = /https?:\/\/[^\s<>"'，。、；：！？（）《》]+/gi;
/** What ends a sentence is not part of the address before it. */
const TAIL = /[.,;:!?)\]}]+$/;

/** Finds addresses and names. Only http and https become links; everything else stays text. */
export function partsOf(text: string, mentions: ReadonlyArray<{ word: string; isMe: boolean }> = []): Part[] {
  const parts: Part[] = [];
  let from = 0;
  for (const found of text.matchAll(LINK)) {
    const address = found[0].replace(TAIL, "");
    if (!isAddress(address)) continue;
    parts.push(...named(text.slice(from, found.index), mentions));
    parts.push({ kind: "link", text: address, href: address });
    from = found.index + address.length;
  }
  parts.push(...named(text.slice(from), mentions));
  return parts;
}

function isAddress(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol);
  } catch {
    return false;
  }
}

function named(text: string, mentions: ReadonlyArray<{ word: string; isMe: boolean }>): Part[] {
  if (text === "") return [];
  // The longest first: one name may begin with another.
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

/** What is being typed after an @, up to the caret; nothing if none is. */
export function mentionAt(text: string, caret: number): { from: number; query: string } | undefined {
  const before = text.slice(0, caret);
  const from = before.lastIndexOf("@");
  if (from < 0 || caret - from > 40) return undefined;
  if (from > 0 && /[A-Za-z0-9]/.test(before[from - 1]!)) return undefined; // an e-mail address
  const query = before.slice(from + 1);
  return /[\n@]|\s\s|^\s/.test(query) ? undefined : { from, query };
}
