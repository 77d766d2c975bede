import { keys, read, write } from "./kept.ts";

/** What somebody has begun to write in a conversation. */
export interface Draft {
  text: string;
  replyTo?: string;
  /** Who is mentioned, by the words that do it. */
  mentions?: Array<{ id: string; word: string }>;
}

function keyOf(me: string, conversationId: string): string {
  return `draft/${me}/${conversationId}`;
}

export function draftOf(me: string, conversationId: string): Draft | undefined {
  return read<Draft>(keyOf(me, conversationId));
}

export function keepDraft(me: string, conversationId: string, draft: Draft): void {
  const isEmpty = draft.text.trim() === "" && draft.replyTo === undefined;
  write(keyOf(me, conversationId), isEmpty ? undefined : draft);
}

export function forgetDrafts(me: string): void {
  for (const key of keys(`draft/${me}/`)) write(key, undefined);
}
