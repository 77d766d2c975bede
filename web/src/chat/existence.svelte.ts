import { conversationOf, type ConversationSummary, Refused } from "nexo-sdk";
import { conversations } from "../conversations.svelte.ts";
import { route } from "../route.svelte.ts";
import { client, session } from "../session.svelte.ts";
import { SYSTEM } from "../system.ts";

/**
 * Whether the user has this conversation. Dissolved and hidden ones stay readable. A link may name any user
 * or group, so an unknown one is checked with the server before the composer is shown.
 */
export class ConversationExistence {
  private answer = $state<boolean>();
  private readonly isListed = $derived.by(() => conversations.has(this.summary.id));
  /** Undefined until the server has answered. */
  readonly exists = $derived(this.isListed ? true : this.answer);

  constructor(private readonly summary: ConversationSummary) {
    $effect(() => {
      if (session.link.name !== "online") return;
      // The client has a new conversation before the list shows it.
      if (this.isListed || conversations.has(this.summary.id)) void client.loadName(this.summary.id).catch(() => {}); // the next read retries
      else if (this.answer !== true) void this.check();
    });
  }

  private async check(): Promise<void> {
    const { peerId, groupId } = this.summary;
    try {
      if (groupId !== undefined) {
        this.answer = (await client.groups.get(groupId)).myRole !== undefined;
      } else if (peerId === SYSTEM) {
        this.answer = true;
      } else if (peerId === undefined || peerId === "" || peerId === session.me) {
        this.answer = false;
      } else {
        const { userId } = await client.people.get(peerId);
        this.answer = true;
        // The server may know the user by another spelling.
        const conversation = conversationOf(session.me, { to: userId });
        if (conversation !== this.summary.id) route.go({ conversation });
      }
    } catch (error) {
      if (error instanceof Refused) this.answer = false;
    }
  }
}
