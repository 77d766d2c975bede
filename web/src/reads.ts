import { client } from "./session.svelte.ts";

/** About as many groups as the list shows without scrolling. */
const MOST = 20;

/** Loads the read state of our last messages in groups for the list: earlier receipts are not pushed again. */
export function watchReads(): void {
  let round = 0;
  client.on("state", async ({ name }) => {
    round += 1;
    const mine = round;
    if (name !== "online") return;
    const summaries = client.conversations().filter((summary) => summary.kind === "group" && summary.isActive);
    for (const summary of summaries.filter(({ lastMessage }) => lastMessage?.isMine).slice(0, MOST)) {
      if (mine !== round) return; // the connection was lost again
      await client.loadReads(summary.id).catch(() => {});
    }
  });
}
