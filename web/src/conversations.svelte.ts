import { addressOf, type ConversationSummary } from "nexo-sdk";
import { debounce } from "./debounce.ts";
import { people } from "./people.svelte.ts";
import { client, session } from "./session.svelte.ts";
import { SYSTEM } from "./system.ts";

/** The system account has no nickname: the texts of the page name it. */
function withSystemName(summary: ConversationSummary): ConversationSummary {
  return summary.peerId === SYSTEM ? { ...summary, name: people.name(SYSTEM) } : summary;
}

/** How many unread messages of a conversation count: all, mentions if muted, none if blocked. */
function unreadOf({ receive, unread, mentionUnread }: ConversationSummary): number {
  return receive === "normal" ? unread : receive === "silent" ? mentionUnread : 0;
}

/** The list of conversations. */
class Conversations {
  all = $state.raw<readonly ConversationSummary[]>([]);
  /** Whether the list was loaded since the page was opened. */
  isLoaded = $state(false);
  /** Unread messages, without those of muted conversations. */
  readonly unread = $derived(
    this.all.reduce((sum, summary) => sum + unreadOf(summary), 0),
  );

  private readonly introduced = new Map<string, string>();
  /** Incremented by every update, so that reads of unlisted conversations are reactive. */
  private updates = $state(0);

  constructor() {
    const refresh = debounce(() => {
      const all = client.conversations();
      this.all = all.some(({ peerId }) => peerId === SYSTEM) ? all.map(withSystemName) : all;
      this.updates += 1;
      this.shareNames();
      this.isLoaded ||= client.state.name === "online";
    });
    client.on("conversation", refresh);
    client.on("state", refresh);
  }

  /** Passes nicknames and avatars of the list on to `people`. */
  private shareNames(): void {
    for (const { peerId, name: nickname, avatar } of this.all) {
      if (peerId === undefined || peerId === SYSTEM || nickname === peerId) continue;
      const introduced = `${nickname}\n${avatar}`;
      if (this.introduced.get(peerId) !== introduced) people.update(peerId, { nickname, avatar });
      this.introduced.set(peerId, introduced);
    }
  }

  /** A conversation, also one without messages. */
  get(id: string): ConversationSummary {
    return this.all.find((summary) => summary.id === id) ?? this.unlisted(id) ?? this.placeholder(id);
  }

  /** Whether it exists on the server. */
  has(id: string): boolean {
    return this.all.some((summary) => summary.id === id) || this.unlisted(id) !== undefined;
  }

  /** A conversation that is not in the list: hidden, or dissolved. */
  private unlisted(id: string): ConversationSummary | undefined {
    void this.updates;
    const summary = client.conversation(id);
    return summary !== undefined && summary.updatedAt > 0 ? withSystemName(summary) : undefined;
  }

  /** A conversation without messages. A private one may have settings. */
  private placeholder(id: string): ConversationSummary {
    const address = addressOf(session.me, id);
    const { isPinned = false, receive = "normal" } = client.conversation(id) ?? {};
    const peer =
      "to" in address
        ? { kind: "single" as const, peerId: address.to, name: people.name(address.to) }
        : { kind: "group" as const, groupId: address.groupId, name: address.groupId };
    return {
      id,
      ...peer,
      avatar: "to" in address ? people.avatar(address.to) : "",
      unread: 0,
      mentionUnread: 0,
      isPinned,
      receive,
      isActive: true,
      isEnded: false,
      isHidden: false,
      lastSeq: 0,
      readSeq: 0,
      peerDeliveredSeq: 0,
      peerReadSeq: 0,
      updatedAt: 0,
    };
  }
}

export const conversations = new Conversations();
