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

/** Calls with what another tab has written since, so that a tab never holds an older draft. */
export function watchDraft(me: string, conversationId: string, hear: (draft: Draft) => void): () => void {
  const key = `nexo/${keyOf(me, conversationId)}`;
  const changed = (event: StorageEvent) => {
    if (event.key === key) hear(draftOf(me, conversationId) ?? { text: "" });
  };
  addEventListener("storage", changed);
  return () => removeEventListener("storage", changed);
}

export function forgetDrafts(me: string): void {
  for (const key of keys(`draft/${me}/`)) write(key, undefined);
}
