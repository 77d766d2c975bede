import type { ConversationLine, Group } from "nexo-sdk";
import { SYSTEM } from "../system.ts";

/** Why one cannot write in a conversation. */
export type Silence =
  | { kind: "system" }
  | { kind: "left" }
  /** Its group was dissolved. */
  | { kind: "ended" }
  | { kind: "adminsOnly" }
  /** Without an end: until an admin ends it. */
  | { kind: "muted"; until?: number };

/** The longest mute with an end is a year. */
const LONGEST_MS = 367 * 86_400_000;

export function silenceOf(line: ConversationLine, group: Group | undefined, now: number): Silence | undefined {
  if (line.peerId === SYSTEM) return { kind: "system" };
  if (line.ended) return { kind: "ended" };
  if (!line.active) return { kind: "left" };
  if (group === undefined) return undefined;
  const role = group.myRole ?? 0;
  const until = group.mutedUntil ?? 0;
  if (until > now && role < 2) return { kind: "muted", ...(until - now < LONGEST_MS && { until }) };
  return group.isMuted && role === 0 ? { kind: "adminsOnly" } : undefined;
}
