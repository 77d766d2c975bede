import { keys, read, write } from "./localStorage.ts";

/** An unsent text in a conversation. */
export interface Draft {
  text: string;
  replyTo?: string;
  /** The mentioned users, and the words in the text that mention them. */
  mentions?: Array<{ id: string; word: string }>;
}

function keyOf(me: string, conversationId: string): string {
  return `draft/${me}/${conversationId}`;
}

export function draftOf(me: string, conversationId: string): Draft | undefined {
  return read<Draft>(keyOf(me, conversationId));
}

export function saveDraftOf(me: string, conversationId: string, draft: Draft): void {
  const isEmpty = draft.text.trim() === "" && draft.replyTo === undefined;
  write(keyOf(me, conversationId), isEmpty ? undefined : draft);
}

/** Calls back when another tab changes the draft, so that no tab keeps an older one. */
export function watchDraft(me: string, conversationId: string, onChange: (draft: Draft) => void): () => void {
  const key = `nexo/${keyOf(me, conversationId)}`;
  const changed = (event: StorageEvent) => {
    if (event.key === key) onChange(draftOf(me, conversationId) ?? { text: "" });
  };
  addEventListener("storage", changed);
  return () => removeEventListener("storage", changed);
}

export function forgetDrafts(me: string): void {
  for (const key of keys(`draft/${me}/`)) write(key, undefined);
}
