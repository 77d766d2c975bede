// An echo bot: answers private messages, and group messages that mention it or reply to it.
// BOT_USER=echo BOT_PASSWORD=… node dist/examples/bot.js https://chat.example.com
import { Client, type Message, Refused } from "nexo-sdk";
import { FileStore } from "nexo-sdk/file";
import { WebSocket } from "ws";

const [url = "http://127.0.0.1:8080"] = process.argv.slice(2);
const { BOT_USER: user = "echo", BOT_PASSWORD: password = "" } = process.env;

const bot = new Client({
  url,
  webSocket: WebSocket,
  store: new FileStore(`${user}.store`), // keeps the sign-in and unsent messages across restarts
  platform: 0,
});

bot.on("state", (state) => console.log(state));
bot.on("problem", (error) => console.error(error.message));
bot.on("message", (message: Message) => {
  if (message.isMine || message.isRecalled || message.state === "preview") return;
  const isForUs = message.conversationId.startsWith("si_") || message.isImportant;
  if (isForUs) bot.send(message.conversationId, message.body, { replyTo: message.serverMsgId });
  bot.markRead(message.conversationId, message.seq);
});

if (!(await bot.resume())) {
  await bot.register({ userId: user, nickname: user, password }).catch((error) => {
    if (!(error instanceof Refused && error.reason === "user_exists")) throw error;
  });
  await bot.login(user, password);
}
