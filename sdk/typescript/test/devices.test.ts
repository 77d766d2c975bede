import { expect, test } from "vitest";

import { World } from "./fake.js";

test("a device has the words of the SDK, also one of a platform it does not know", async () => {
  const world = new World();
  await world.online();
  const device = { login_id: "a1", device_name: "", address: "192.0.2.7", created_at: 1, last_used_at: 2 };
  const flags = { is_current: true, is_online: false };
  const answer = [1, 5, 0, 9].map((platform_id) => ({ ...device, ...flags, platform_id }));
  world.answers["/user/devices"] = () => answer;
  const devices = await world.client.devices();
  expect(devices.map(({ platform }) => platform)).toEqual(["iOS", "Web", "unknown", "unknown"]);
  const words = { loginId: "a1", deviceName: "", address: "192.0.2.7", createdAt: 1, lastUsedAt: 2 };
  expect(devices[0]).toEqual({ ...words, platform: "iOS", isCurrent: true, isOnline: false });
});
