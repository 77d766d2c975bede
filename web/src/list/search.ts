import type { ConversationLine } from "nexo-sdk";

/** Lines whose name or id has all of the words, in the order of the list. */
export function matching(lines: readonly ConversationLine[], words: string): readonly ConversationLine[] {
  const wanted = words.toLocaleLowerCase().split(/\s+/).filter((word) => word !== "");
  if (wanted.length === 0) return lines;
  return lines.filter((line) => {
    const text = `${line.name} ${line.peerId ?? ""} ${line.groupId ?? ""}`.toLocaleLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
