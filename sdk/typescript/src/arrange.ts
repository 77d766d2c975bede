import type { MessageWindow } from "./messageWindow.js";
import type { Message } from "./types.js";

/**
 * All messages in display order: those with a seq, then those without. A refused message never gets a seq, so
 * it stays where it was sent: later messages are shown after it.
 */
export function arrange(messages: MessageWindow, unsequenced: readonly Message[]): Message[] {
  const hasAnchor = (message: Message) => message.state === "refused" && message.after !== undefined;
  const refused = unsequenced.filter((message) => hasAnchor(message) && message.after! < messages.last);
  if (refused.length === 0) return [...messages.all, ...unsequenced];
  const all: Message[] = [];
  let next = messages.first;
  for (const message of refused.sort((a, b) => a.after! - b.after!)) {
    // It belongs before the oldest message on this device, so it is shown when that part is loaded.
    if (message.after! < messages.first - 1) continue;
    while (next <= message.after!) all.push(messages.at(next++)!);
    all.push(message);
  }
  while (next <= messages.last) all.push(messages.at(next++)!);
  const placed = new Set(refused);
  return [...all, ...unsequenced.filter((message) => !placed.has(message))];
}

/** The last message for the list: a refused one only until a newer message exists. */
export function latest(messages: MessageWindow, previews: readonly Message[], outgoing: readonly Message[]): Message | undefined {
  const isBehind = ({ state, after = messages.last }: Message) => state === "refused" && after < messages.last;
  const sent = outgoing.filter((message) => !isBehind(message));
  // Messages in flight are newer than refused ones.
  const inFlight = sent.filter((message) => message.state !== "refused");
  return inFlight.at(-1) ?? previews.at(-1) ?? sent.at(-1) ?? messages.all.at(-1);
}
