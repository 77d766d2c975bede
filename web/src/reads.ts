import { client } from "./session.svelte.ts";

/** So many groups the list shows at first, and a few more. */
const MOST = 20;

/** Lets the list show how far our last words in groups were read: receipts of the past do not come again. */
export function watchReads(): void {
  let round = 0;
  client.on("state", async ({ name }) => {
    round += 1;
    const mine = round;
    if (name !== "online") return;
    const lines = client.conversations().filter((line) => line.kind === "group" && line.active);
    for (const line of lines.filter(({ lastMessage }) => lastMessage?.mine).slice(0, MOST)) {
      if (mine !== round) return; // the line went away again
      await client.loadReads(line.id).catch(() => {});
    }
  });
}
