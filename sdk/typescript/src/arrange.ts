import type { Held } from "./held.js";
import type { Message } from "./types.js";

/**
 * Everything to show, in order: what has a place, then what has none yet. A refused message gets no
 * place any more, so it stays where it was said: what comes later stands after it.
 */
export function arrange(held: Held, unplaced: readonly Message[]): Message[] {
  const isKnown = (message: Message) => message.state === "refused" && message.after !== undefined;
  const refused = unplaced.filter((message) => isKnown(message) && message.after! < held.last);
  if (refused.length === 0) return [...held.all, ...unplaced];
  const all: Message[] = [];
  let next = held.first;
  for (const message of refused.sort((a, b) => a.after! - b.after!)) {
    // Said before the oldest message here: it comes with the older ones.
    if (message.after! < held.first - 1) continue;
    while (next <= message.after!) all.push(held.at(next++)!);
    all.push(message);
  }
  while (next <= held.last) all.push(held.at(next++)!);
  const kept = new Set(refused);
  return [...all, ...unplaced.filter((message) => !kept.has(message))];
}

/** The message that a list shows of a conversation: a refused one only until something comes after it. */
export function latest(held: Held, previews: readonly Message[], outgoing: readonly Message[]): Message | undefined {
  const isBehind = ({ state, after = held.last }: Message) => state === "refused" && after < held.last;
  const sent = outgoing.filter((message) => !isBehind(message));
  // Whatever is on its way comes after what was refused.
  const onItsWay = sent.filter((message) => message.state !== "refused");
  return onItsWay.at(-1) ?? previews.at(-1) ?? sent.at(-1) ?? held.all.at(-1);
}
