import { Refused, Unreachable } from "nexo-sdk";
import { t } from "./texts/t.svelte.ts";

/** The text to show for an error. */
export function errorText(error: unknown): string {
  if (error instanceof Refused) return t.reasons[error.reason] ?? t.unexpected;
  if (error instanceof Unreachable) return t.unreachable;
  return t.unexpected;
}
