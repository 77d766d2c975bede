import { expect, test } from "vitest";

import { calm, World } from "./fake.js";

test("all pages of the blocked people are one list", async () => {
  const world = new World();
  await world.online();
  const pages: Record<string, object> = {
    "": { user_ids: ["ann", "ben"], has_more: true, next_cursor: "ben" },
    ben: { user_ids: ["cora"], has_more: false },
  };
  world.answers["/user/blocks"] = (query) => pages[query.get("cursor") ?? ""] as object;
  expect(await world.client.blocked()).toEqual(["ann", "ben", "cora"]);
});

test("a block is the setting of the conversation at once, and the end of one keeps what is silent", async () => {
  const world = new World();
  await world.online();
  world.answers["/user/block"] = world.answers["/user/unblock"] = () => ({});
  const told: string[] = [];
  world.client.on("conversation", ({ id, receive }) => told.push(`${id} ${receive}`));
  await world.client.block("you");
  await calm();
  expect(world.client.conversation({ to: "you" })?.receive).toBe("blocked");
  await world.client.unblock("you");
  await calm();
  expect(told).toEqual(["si_me_you blocked", "si_me_you normal"]);
  world.answers["/conversation/update"] = () => ({ is_pinned: false, recv_msg_opt: 1 });
  await world.client.receive({ to: "you" }, "silent");
  await world.client.unblock("you");
  expect(world.client.conversation({ to: "you" })?.receive).toBe("silent");
  await world.client.unblock("nobody");
  expect(world.client.conversation({ to: "nobody" })).toBeUndefined();
});

test("choices have the words of the SDK, and only the given ones are sent", async () => {
  const world = new World();
  await world.online();
  const wire = { write: "shared_group", invite: "everybody", online: "everybody", last_seen: "nobody" };
  world.answers["/user/consent"] = () => wire;
  const consent = { write: "sharedGroup", invite: "everybody", online: "everybody", lastSeen: "nobody" };
  expect(await world.client.consent()).toEqual(consent);
  expect(await world.client.setConsent({ write: "sharedGroup", lastSeen: "nobody" })).toEqual(consent);
  expect(world.asked.at(-1)?.body).toEqual({ write: "shared_group", last_seen: "nobody" });
});
