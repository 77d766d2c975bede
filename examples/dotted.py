"""Two users exchange messages in the dotted dialect (docs/protocol/dotted.md), as JSON.

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


async def request(socket, cmd, **payload):
    """Sends a command and waits for its answer, which has the same `request_id`."""
    request_id = secrets.token_hex(4)
    frame = {"cmd": cmd, "request_id": request_id, "payload": payload}
    await socket.send(json.dumps(frame))
    answer = await receive(socket, cmd, request_id)
    if answer["code"] != 0:
        sys.exit(f"{cmd} was refused: {answer['code']} {answer['message']}")
    return answer["payload"]


async def receive(socket, cmd, request_id=""):
    """The next frame of this command; without a `request_id` it is a push. Earlier frames are skipped."""
    while True:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 10))
        if (frame["cmd"], frame["request_id"]) == (cmd, request_id):
            return frame


async def sign_in(socket, name):
    """Registers and signs in an account on this connection: in this dialect everything is a command."""
    user_id, password = f"{name}-{secrets.token_hex(4)}", secrets.token_hex(16)
    await request(socket, "auth.register", username=user_id, password=password, nickname=name)
    await request(socket, "auth.login", username=user_id, password=password, device_type="web")
    return user_id


async def main():
    async with websockets.connect(ADDRESS) as a, websockets.connect(ADDRESS) as b:
        alice, bob = await sign_in(a, "alice"), await sign_in(b, "bob")

        # The sender chooses the id. A message sent again with the same id is stored once, so a retry is safe.
        saved = await request(a, "chat.send_message", to_id=bob, chat_type=1,
                          content="Hello, Bob", client_msg_id=secrets.token_hex(16))
        received = (await receive(b, "chat.message"))["payload"]
        print(f"saved as {saved['seq']}, bob heard: {received['content']}")

        # Bob marks it and everything before it as read.
        await request(b, "chat.mark_read", chat_id=alice, chat_type=1, last_msg_id=received["msg_id"])
        receipt = (await receive(a, "chat.read_receipt"))["payload"]
        print("alice hears: read by", receipt["user_id"].split("-")[0])


try:
    asyncio.run(main())
except OSError as error:
    sys.exit(f"No answer from {SERVER} ({error}). Is the server running? `make run` starts one.")
