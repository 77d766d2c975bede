// An echo bot: says everything back, in private and, if it is spoken to, in groups.
// BOT_USER=echo BOT_PASSWORD=… node dist/examples/bot.js https://chat.example.com
import { Client, type Message, Refused } from "nexo-sdk";
import { FileStore } from "nexo-sdk/file";
import { WebSocket } from "ws";

const [url = "http://127.0.0.1:8080"] = process.argv.slice(2);
const { BOT_USER: user = "echo", BOT_PASSWORD: password = "" } = process.env;

const bot = new Client({
  url,
  webSocket: WebSocket,
  store: new FileStore(`${user}.store`), // a restart goes on with what was not sent
  platform: 0,
});

bot.on("state", (state) => console.log(state));
bot.on("problem", (error) => console.error(error.message));
bot.on("message", (message: Message) => {
  if (message.mine || message.revoked || message.state === "preview") return;
  const isForUs = message.conversationId.startsWith("si_") || message.important;
  if (isForUs) bot.send(message.conversationId, message.body, { replyTo: message.serverMsgId });
  bot.markRead(message.conversationId, message.seq);
});

if (!(await bot.resume())) {
  await bot.register({ userId: user, nickname: user, password }).catch((error) => {
    if (!(error instanceof Refused && error.reason === "user_exists")) throw error;
  });
  await bot.login(user, password);
}
