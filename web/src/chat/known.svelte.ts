import { conversationOf, type ConversationLine, Refused } from "nexo-sdk";
import { lines } from "../lines.svelte.ts";
import { route } from "../route.svelte.ts";
import { client, session } from "../session.svelte.ts";
import { SYSTEM } from "../system.ts";

/**
 * Whether there is such a conversation for us. One that has ended or was hidden stays readable. A link may
 * name anybody and any group, so one we never had is asked for before somebody can write there.
 */
export class Known {
  private answer = $state<boolean>();
  private readonly isOurs = $derived.by(() => lines.has(this.line.id));
  /** Undefined until the server has said. */
  readonly isThere = $derived(this.isOurs ? true : this.answer);

  constructor(private readonly line: ConversationLine) {
    $effect(() => {
      if (session.link.name !== "online") return;
      // What came with the line is there before the list shows it.
      if (this.isOurs || lines.has(this.line.id)) void client.loadName(this.line.id).catch(() => {}); // the next look asks again
      else if (this.answer !== true) void this.ask();
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
