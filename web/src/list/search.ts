import type { ConversationSummary } from "nexo-sdk";

/** Conversations whose name or id contains all words, in list order. */
export function matching(summaries: readonly ConversationSummary[], words: string): readonly ConversationSummary[] {
  const wanted = words.toLocaleLowerCase().split(/\s+/).filter((word) => word !== "");
  if (wanted.length === 0) return summaries;
  return summaries.filter((summary) => {
    const text = `${summary.name} ${summary.peerId ?? ""} ${summary.groupId ?? ""}`.toLocaleLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
