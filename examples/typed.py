"""Two people talk, in the typed dialect (docs/protocol/typed.md).

Needs any Python from 3.9 on with the package `websockets`, and a running server (`make run`):

    python3 -m venv .venv && .venv/bin/pip install websockets
    .venv/bin/python examples/typed.py                          # talks to http://127.0.0.1:8080
    .venv/bin/python examples/typed.py https://chat.example.com

With a second address Bob connects there instead: two nodes of one cluster.
Each run makes two new accounts with random names.
"""
import asyncio
import json
import secrets
import sys
import urllib.error
import urllib.request

try:
    import websockets
except ImportError:
    sys.exit("This needs the package `websockets`; the lines at the top of this file say how to get it.")

SERVERS = sys.argv[1:] or ["http://127.0.0.1:8080"]
ALICES, BOBS = SERVERS[0], SERVERS[-1]


def post(server, path, body):
    """Asks over HTTP. Every answer is an envelope; what one asked for is its `data`."""
    request = urllib.request.Request(server + path, json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as refusal:
        sys.exit(f"{path} was refused: {refusal.read().decode()}")


def somebody(server, name):
    """A new account that is signed in: its id, and the token to connect with."""
    user_id, password = f"{name}-{secrets.token_hex(4)}", secrets.token_hex(16)
    post(server, "/user/register", {"user_id": user_id, "nickname": name, "password": password})
    login = post(server, "/auth/login", {"user_id": user_id, "password": password, "platform_id": 5})
    return user_id, login["token"]


async def hear(socket, kind):
    """The next frame of this type; what comes before it is skipped."""
    while True:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 10))
        if frame["type"] == kind:
            return frame
        if frame["type"] in ("ERROR", "AUTH_FAIL"):
            sys.exit(f"refused: {frame['reason']}, {frame['message']}")


async def main():
    (alice, alices_token), (bob, bobs_token) = somebody(ALICES, "alice"), somebody(BOBS, "bob")
    a_address, b_address = (server.replace("http", "ws", 1) + "/ws" for server in (ALICES, BOBS))
    async with websockets.connect(a_address) as a, websockets.connect(b_address) as b:
        # First of all one says who one is; then comes what one has missed, and its end.
        for socket, token in ((a, alices_token), (b, bobs_token)):
            await socket.send(json.dumps({"type": "AUTH", "token": token}))
            await hear(socket, "RESEND_DONE")

        # The sender names the message. Sent again under this name it is stored once, so a retry is safe.
        name = secrets.token_hex(16)
        say = {"type": "SINGLE_CHAT", "clientMsgId": name, "to": bob, "body": "Hello, Bob"}
        await a.send(json.dumps(say))
        saved, heard = await hear(a, "ACK"), await hear(b, "SINGLE_CHAT")
        print(f"saved as {saved['msgSeq']}, bob heard: {heard['body']}")

        # Bob has read it, and everything before it.
        read = {"type": "ACK", "ackType": "read", "serverMsgId": heard["serverMsgId"]}
        await b.send(json.dumps(read))
        print("alice hears:", (await hear(a, "ACK"))["ackType"])


try:
    asyncio.run(main())
except OSError as error:
    sys.exit(f"No answer from {' or '.join(SERVERS)} ({error}). Is the server running? `make run` starts one.")
