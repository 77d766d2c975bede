// Ten things asked of a server with the TypeScript types that were made from docs/openapi.json.
import assert from "node:assert/strict";

import createClient from "openapi-fetch";
import type { components, paths } from "./nexo.js";

const baseUrl = process.argv[2] ?? "";
const password = "correct horse";
const anybody = createClient<paths>({ baseUrl });

async function person(user_id: string) {
  const account = { user_id, nickname: user_id, password };
  const made = await anybody.POST("/user/register", { body: account });
  assert.equal(made.data?.data.user_id, user_id);
  const signed = await anybody.POST("/auth/login", { body: { user_id, password, platform_id: 5 } });
  const token: string = signed.data?.data.token ?? "";
  return createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
}

const [anna, paul] = [await person("ts-anna"), await person("ts-paul")];
const said: components["schemas"]["SendBody"] = {
  client_msg_id: "1",
  session_type: 1,
  recv_id: "ts-paul",
  msg_type: 1,
  content: { text: "hello" },
  extra: { colour: "red" },
};
const sent = (await anna.POST("/msg/send", { body: said })).data?.data;
assert.ok(sent);
assert.equal(sent.extra?.["colour"], "red");
const { conversation_id } = sent;

const pulled = await paul.GET("/msg/pull", { params: { query: { conversation_id } } });
assert.deepEqual(pulled.data?.data.messages.map(({ content }) => content["text"]), ["hello"]);
const query = { peerUserId: "ts-anna" };
const since = await paul.GET("/single-chat/message/since", { params: { query } });
assert.equal(since.data?.data[0]?.content, "hello");
assert.equal(since.data?.has_more, false);
const lines = await paul.GET("/conversation/list", { params: { query: { with_last_message: true } } });
assert.equal(lines.data?.data.list[0]?.unread_count, 1);
const read = await paul.POST("/conversation/mark_read", { body: { conversation_id, read_seq: 1 } });
assert.equal(read.data?.data.unread_count, 0);
const renamed = await anna.PUT("/user/update", { body: { nickname: "Anna L." } });
assert.equal(renamed.data?.data.nickname, "Anna L.");
const seen = await paul.GET("/user/info", { params: { query: { user_id: "ts-anna" } } });
assert.equal(seen.data?.data.nickname, "Anna L.");
const group = await anna.POST("/group/create", { body: { name: "Friends", member_ids: ["ts-paul"] } });
const group_id: string = group.data?.data.group_id ?? "";
const members = await paul.GET("/group/members", { params: { query: { group_id } } });
assert.deepEqual(members.data?.data.list.map(({ user_id }) => user_id), ["ts-anna", "ts-paul"]);
const refused = await paul.GET("/user/info", { params: { query: { user_id: "nobody" } } });
assert.equal(refused.error?.reason, "user_not_found");
console.log("the TypeScript client works");
