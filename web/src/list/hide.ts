import { route } from "../route.svelte.ts";
import { client } from "../session.svelte.ts";
import { t } from "../texts/t.svelte.ts";
import { toasts } from "../toasts.svelte.ts";

/** Hides a conversation from the list until its next message; a toast offers to undo it. */
export async function hide(conversation: string): Promise<void> {
  if (!(await toasts.attempt(() => client.hide(conversation)))) return;
  if (route.current.conversation === conversation) route.go({});
  const act = () => void toasts.attempt(() => client.hide(conversation, false));
  toasts.show(t.list.hidden, { text: t.list.unhide, act });
}
