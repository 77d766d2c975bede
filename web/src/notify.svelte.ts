import { added } from "./added.svelte.ts";
import { lines } from "./lines.svelte.ts";
import { isLooked, tellLooked } from "./looked.ts";
import { people } from "./people.svelte.ts";
import { route } from "./route.svelte.ts";
import { client, session } from "./session.svelte.ts";
import { settings } from "./settings.svelte.ts";
import { t } from "./texts/t.svelte.ts";

/** What came long ago is no news. */
export const NEWS_MS = 60_000;

export function canNotify(): boolean {
  return typeof Notification !== "undefined" && globalThis.isSecureContext;
}

/** Tells of what arrives while nobody looks, and counts it in the title. */
export function watchNews(): void {
  $effect.root(() => {
    $effect(() => {
      const many = session.page === "desk" ? lines.unread : 0;
      document.title = many > 0 ? `(${many > 99 ? "99+" : many}) ${t.app}` : t.app;
    });
  });
  tellLooked();
  client.on("message", async (message) => {
    if (message.mine || message.revoked || !document.hidden || !settings.notify) return;
    if (!canNotify() || Notification.permission !== "granted") return;
    if (Date.now() - message.at > NEWS_MS || (await isLooked())) return;
    const line = lines.get(message.conversationId);
    if (line.receive === "blocked" || (line.receive === "silent" && !message.important)) return;
    const text = message.type === "TEXT" ? message.body : t.chat.attachment;
    const isGroup = line.kind === "group";
    const body = isGroup ? t.chat.from(people.name(message.from), text) : text;
    // The same tag for all tabs: one conversation is one notification.
    show(line.name, body, line.id);
  });
  added.on(async (conversation, by, at) => {
    if (!document.hidden || !settings.notify || Date.now() - at > NEWS_MS) return;
    if (!canNotify() || Notification.permission !== "granted" || (await isLooked())) return;
    const who = await client.people.get(by).catch(() => undefined);
    const group = await client.groups.get(conversation.slice(3)).catch(() => undefined);
    const name = group?.name ?? lines.get(conversation).name;
    show(name, t.join.addedYou(who?.nickname || by, name), conversation);
  });
}

/** Browsers of phones have the word but not the thing: there the count in the title has to do. */
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
