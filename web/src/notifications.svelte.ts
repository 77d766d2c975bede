import { groupAdditions } from "./groupAdditions.svelte.ts";
import { conversations } from "./conversations.svelte.ts";
import { isAnyTabVisible, announceVisibility } from "./tabVisibility.ts";
import { people } from "./people.svelte.ts";
import { route } from "./route.svelte.ts";
import { client, session } from "./session.svelte.ts";
import { settings } from "./settings.svelte.ts";
import { t } from "./texts/t.svelte.ts";

/** Older messages do not notify. */
export const RECENT_MS = 60_000;

export function canNotify(): boolean {
  return typeof Notification !== "undefined" && globalThis.isSecureContext;
}

/** Notifies of messages that arrive while no tab is visible, and counts unread ones in the title. */
export function watchNotifications(): void {
  $effect.root(() => {
    $effect(() => {
      const many = session.page === "workspace" ? conversations.unread : 0;
      document.title = many > 0 ? `(${many > 99 ? "99+" : many}) ${t.app}` : t.app;
    });
  });
  announceVisibility();
  client.on("message", async (message) => {
    if (message.isMine || message.isRecalled || !document.hidden || !settings.notify) return;
    if (!canNotify() || Notification.permission !== "granted") return;
    if (Date.now() - message.at > RECENT_MS || (await isAnyTabVisible())) return;
    const summary = conversations.get(message.conversationId);
    if (summary.receive === "blocked" || (summary.receive === "silent" && !message.isImportant)) return;
    const text = message.type === "TEXT" ? message.body : t.chat.attachment;
    const isGroup = summary.kind === "group";
    const body = isGroup ? t.chat.from(people.name(message.from), text) : text;
    // The same tag in all tabs: one notification per conversation.
    show(summary.name, body, summary.id);
  });
  groupAdditions.on(async (conversation, by, at) => {
    if (!document.hidden || !settings.notify || Date.now() - at > RECENT_MS) return;
    if (!canNotify() || Notification.permission !== "granted" || (await isAnyTabVisible())) return;
    const who = await client.people.get(by).catch(() => undefined);
    const group = await client.groups.get(conversation.slice(3)).catch(() => undefined);
    const name = group?.name ?? conversations.get(conversation).name;
    show(name, t.join.addedYou(who?.nickname || by, name), conversation);
  });
}

/** Mobile browsers have `Notification` but its constructor throws: there only the title counts. */
function show(title: string, body: string, conversation: string): void {
  let shown: Notification;
  try {
    shown = new Notification(title, { body: body.slice(0, 200), tag: conversation, icon: "/icon-192.png" });
  } catch {
    return;
  }
  shown.onclick = () => {
    window.focus();
    route.go({ conversation });
    shown.close();
  };
}
