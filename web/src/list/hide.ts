import { route } from "../route.svelte.ts";
import { client } from "../session.svelte.ts";
import { t } from "../texts/t.svelte.ts";
import { toasts } from "../toasts.svelte.ts";

/** Takes a conversation out of the list until something is said in it; for a moment one can think again. */
export async function hide(conversation: string): Promise<void> {
  if (!(await toasts.attempt(() => client.hide(conversation)))) return;
  if (route.place.conversation === conversation) route.go({});
  const act = () => void toasts.attempt(() => client.hide(conversation, false));
  toasts.say(t.list.hidden, { text: t.list.unhide, act });
}
