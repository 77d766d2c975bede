import { addressOf, type ConversationLine } from "nexo-sdk";
import { later } from "./later.ts";
import { people } from "./people.svelte.ts";
import { client, session } from "./session.svelte.ts";

/** The list of conversations. */
class Lines {
  all = $state.raw<readonly ConversationLine[]>([]);
  /** Messages that wait, of conversations that are not muted. */
  readonly unread = $derived(
    this.all.reduce((sum, line) => sum + (line.receive === "normal" ? line.unread : line.mentionUnread), 0),
  );

  constructor() {
    const refresh = later(() => {
      this.all = client.conversations();
    });
    client.on("conversation", refresh);
    client.on("state", refresh);
  }

  /** A conversation, also one in which nothing was said yet. */
  get(id: string): ConversationLine {
    return this.all.find((line) => line.id === id) ?? this.unspoken(id);
  }

  private unspoken(id: string): ConversationLine {
    const address = addressOf(session.me, id);
    const whom =
      "to" in address
        ? { kind: "single" as const, peerId: address.to, name: people.name(address.to) }
        : { kind: "group" as const, groupId: address.groupId, name: address.groupId };
    return {
      id,
      ...whom,
      avatar: "to" in address ? people.avatar(address.to) : "",
      unread: 0,
      mentionUnread: 0,
      pinned: false,
      receive: "normal",
      active: true,
      ended: false,
      hidden: false,
      lastSeq: 0,
      readSeq: 0,
      peerDeliveredSeq: 0,
      peerReadSeq: 0,
      updatedAt: 0,
    };
  }
}

export const lines = new Lines();
