import { conversationOf, type ConversationLine, Refused } from "nexo-sdk";
import { lines } from "../lines.svelte.ts";
import { route } from "../route.svelte.ts";
import { client, session } from "../session.svelte.ts";
import { SYSTEM } from "../system.ts";

/**
 * Whether there is such a conversation for us. A link may name anybody and any group, so one that is not
 * in the list is asked for before somebody can write there.
 */
export class Known {
  private answer = $state<boolean>();
  readonly isListed = $derived.by(() => lines.all.some((one) => one.id === this.line.id));
  /** Undefined until the server has said. */
  readonly isThere = $derived(this.isListed ? true : this.answer);

  constructor(private readonly line: ConversationLine) {
    $effect(() => {
      if (!this.isListed && this.answer !== true && session.link.name === "online") void this.ask();
    });
  }

  private async ask(): Promise<void> {
    const { peerId, groupId } = this.line;
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
        // The server may know them by another spelling.
        const conversation = conversationOf(session.me, { to: userId });
        if (conversation !== this.line.id) route.go({ conversation });
      }
    } catch (error) {
      if (error instanceof Refused) this.answer = false;
    }
  }
}
