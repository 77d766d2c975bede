"""Two people talk, in the dotted dialect (docs/protocol/dotted.md), as JSON.

Needs any Python from 3.9 on with the package `websockets`, and a running server (`make run`):

    python3 -m venv .venv && .venv/bin/pip install websockets
    .venv/bin/python examples/dotted.py                          # talks to http://127.0.0.1:8080
    .venv/bin/python examples/dotted.py https://chat.example.com

Each run makes two new accounts with random names.
"""
import asyncio
import json
import secrets
import sys

try:
    import websockets
except ImportError:
    sys.exit("This needs the package `websockets`; the lines at the top of this file say how to get it.")

SERVER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
ADDRESS = SERVER.replace("http", "ws", 1) + "/ws"


async def ask(socket, cmd, **payload):
    """Sends a command and waits for its answer, which has the same `request_id`."""
    request_id = secrets.token_hex(4)
    frame = {"cmd": cmd, "request_id": request_id, "payload": payload}
    await socket.send(json.dumps(frame))
    answer = await hear(socket, cmd, request_id)
    if answer["code"] != 0:
        sys.exit(f"{cmd} was refused: {answer['code']} {answer['message']}")
    return answer["payload"]


async def hear(socket, cmd, request_id=""):
    """The next frame of this command; without a `request_id` it is a push. What comes before is skipped."""
    while True:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 10))
        if (frame["cmd"], frame["request_id"]) == (cmd, request_id):
            return frame


async def sign_in(socket, name):
    """A new account, signed in on this connection: everything is done by commands, also this."""
    user_id, password = f"{name}-{secrets.token_hex(4)}", secrets.token_hex(16)
    await ask(socket, "auth.register", username=user_id, password=password, nickname=name)
    await ask(socket, "auth.login", username=user_id, password=password, device_type="web")
    return user_id


async def main():
    async with websockets.connect(ADDRESS) as a, websockets.connect(ADDRESS) as b:
        alice, bob = await sign_in(a, "alice"), await sign_in(b, "bob")

        # The sender names the message. Sent again under this name it is stored once, so a retry is safe.
        saved = await ask(a, "chat.send_message", to_id=bob, chat_type=1,
                          content="Hello, Bob", client_msg_id=secrets.token_hex(16))
        heard = (await hear(b, "chat.message"))["payload"]
        print(f"saved as {saved['seq']}, bob heard: {heard['content']}")

        # Bob has read it, and everything before it.
        await ask(b, "chat.mark_read", chat_id=alice, chat_type=1, last_msg_id=heard["msg_id"])
        receipt = (await hear(a, "chat.read_receipt"))["payload"]
        print("alice hears: read by", receipt["user_id"].split("-")[0])


try:
    asyncio.run(main())
except OSError as error:
    sys.exit(f"No answer from {SERVER} ({error}). Is the server running? `make run` starts one.")
