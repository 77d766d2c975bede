"""Two people talk, in the dotted dialect: python3 examples/dotted.py http://127.0.0.1:8080

Needs the package `websockets`. Made from docs/protocol/dotted.md alone.
"""
import asyncio, json, secrets, sys

import websockets

SERVER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
ADDRESS = SERVER.replace("http", "ws", 1) + "/ws"


async def ask(socket, cmd, **payload):
    request_id = secrets.token_hex(4)
    frame = {"cmd": cmd, "request_id": request_id, "payload": payload}
    await socket.send(json.dumps(frame))
    answer = await hear(socket, cmd, request_id)
    assert answer["code"] == 0, answer
    return answer["payload"]


async def hear(socket, cmd, request_id=""):
    while True:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 10))
        if (frame["cmd"], frame["request_id"]) == (cmd, request_id):
            return frame


async def sign_in(socket, name):
    user_id, password = f"{name}-{secrets.token_hex(4)}", secrets.token_hex(16)
    await ask(socket, "auth.register", username=user_id, password=password, nickname=name)
    await ask(socket, "auth.login", username=user_id, password=password, device_type="web")
    return user_id


async def main():
    async with websockets.connect(ADDRESS) as a, websockets.connect(ADDRESS) as b:
        alice, bob = await sign_in(a, "alice"), await sign_in(b, "bob")
        saved = await ask(a, "chat.send_message", to_id=bob, chat_type=1,
                          content="Hello, Bob", client_msg_id="1")
        heard = (await hear(b, "chat.message"))["payload"]
        print(f"saved as {saved['seq']}, bob heard: {heard['content']}")
        await ask(b, "chat.mark_read", chat_id=alice, chat_type=1, last_msg_id=heard["msg_id"])
        receipt = (await hear(a, "chat.read_receipt"))["payload"]
        print("alice hears: read by", receipt["user_id"].split("-")[0])


asyncio.run(main())
