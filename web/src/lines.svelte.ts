import { addressOf, type ConversationLine } from "nexo-sdk";
import { later } from "./later.ts";
import { people } from "./people.svelte.ts";
import { client, session } from "./session.svelte.ts";
import { SYSTEM } from "./system.ts";

/** The server has no name of its own: the language of the page gives it one. */
function named(line: ConversationLine): ConversationLine {
  return line.peerId === SYSTEM ? { ...line, name: people.name(SYSTEM) } : line;
}

/** How many messages of a conversation one wants to know about. */
function waiting({ receive, unread, mentionUnread }: ConversationLine): number {
  return receive === "normal" ? unread : receive === "silent" ? mentionUnread : 0;
}

/** The list of conversations. */
class Lines {
  all = $state.raw<readonly ConversationLine[]>([]);
  /** Whether the server has told them since this page is open. */
  isLoaded = $state(false);
  /** Messages that wait, of conversations that are not muted. */
  readonly unread = $derived(
    this.all.reduce((sum, line) => sum + waiting(line), 0),
  );

  private readonly told = new Map<string, string>();
  /** Counts what was heard, for those that are not in the list. */
  private heard = $state(0);

  constructor() {
    const refresh = later(() => {
      const all = client.conversations();
      this.all = all.some(({ peerId }) => peerId === SYSTEM) ? all.map(named) : all;
      this.heard += 1;
      this.introduce();
      this.isLoaded ||= client.state.name === "online";
    });
    client.on("conversation", refresh);
    client.on("state", refresh);
  }

  /** The list tells names and pictures, too: who has a new one there has it everywhere. */
  private introduce(): void {
    for (const { peerId, name: nickname, avatar } of this.all) {
      if (peerId === undefined || peerId === SYSTEM || nickname === peerId) continue;
      const told = `${nickname}\n${avatar}`;
      if (this.told.get(peerId) !== told) people.learn(peerId, { nickname, avatar });
      this.told.set(peerId, told);
    }
  }

  /** A conversation, also one in which nothing was said yet. */
  get(id: string): ConversationLine {
    return this.all.find((line) => line.id === id) ?? this.unlisted(id) ?? this.unspoken(id);
  }

  /** Whether the server has it: something was said, or it is a group. */
  has(id: string): boolean {
    return this.all.some((line) => line.id === id) || this.unlisted(id) !== undefined;
  }

  /** One that is not in the list: hidden, or its group has ended. */
  private unlisted(id: string): ConversationLine | undefined {
    void this.heard;
    const line = client.conversation(id);
    return line !== undefined && line.updatedAt > 0 ? named(line) : undefined;
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
