import { Refused, Unreachable } from "nexo-sdk";
import { t } from "./texts/t.svelte.ts";

/** What went wrong, in a sentence for people. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Refused) return t.reasons[error.reason] ?? t.unexpected;
  if (error instanceof Unreachable) return t.unreachable;
  return t.unexpected;
}
