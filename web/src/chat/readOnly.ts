import type { ConversationSummary, Group } from "nexo-sdk";
import { SYSTEM } from "../system.ts";

/** Why the user cannot post in a conversation. */
export type ReadOnlyReason =
  | { kind: "system" }
  | { kind: "left" }
  /** The group was dissolved. */
  | { kind: "ended" }
  | { kind: "adminsOnly" }
  /** Without `until`: until an admin unmutes the user. */
  | { kind: "muted"; until?: number };

/** A limited mute lasts a year at most; later ends mean no limit. */
const LONGEST_MS = 367 * 86_400_000;

export function readOnlyReasonOf(summary: ConversationSummary, group: Group | undefined, now: number): ReadOnlyReason | undefined {
  if (summary.peerId === SYSTEM) return { kind: "system" };
  if (summary.isEnded) return { kind: "ended" };
  if (!summary.isActive) return { kind: "left" };
  if (group === undefined) return undefined;
  const role = group.myRole ?? "member";
  const until = group.mutedUntil ?? 0;
  if (until > now && role !== "owner") return { kind: "muted", ...(until - now < LONGEST_MS && { until }) };
  return group.isMuted && role === "member" ? { kind: "adminsOnly" } : undefined;
}
