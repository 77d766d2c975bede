"""Two users exchange messages in the typed dialect (docs/protocol/typed.md).

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
    """Sends an HTTP request. Every answer is an envelope; returns its `data`."""
    request = urllib.request.Request(server + path, json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as refusal:
        sys.exit(f"{path} was refused: {refusal.read().decode()}")


def register_and_login(server, name):
    """Registers and signs in an account; returns its id and the token to connect with."""
    user_id, password = f"{name}-{secrets.token_hex(4)}", secrets.token_hex(16)
    post(server, "/user/register", {"user_id": user_id, "nickname": name, "password": password})
    login = post(server, "/auth/login", {"user_id": user_id, "password": password, "platform_id": 5})
    return user_id, login["token"]


async def receive(socket, kind):
    """The next frame of this type; earlier ones are skipped."""
    while True:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 10))
        if frame["type"] == kind:
            return frame
        if frame["type"] in ("ERROR", "AUTH_FAIL"):
            sys.exit(f"refused: {frame['reason']}, {frame['message']}")


async def main():
    (alice, alices_token), (bob, bobs_token) = register_and_login(ALICES, "alice"), register_and_login(BOBS, "bob")
    a_address, b_address = (server.replace("http", "ws", 1) + "/ws" for server in (ALICES, BOBS))
    async with websockets.connect(a_address) as a, websockets.connect(b_address) as b:
        # Authenticate first; then the server sends missed messages, and RESEND_DONE at the end.
        for socket, token in ((a, alices_token), (b, bobs_token)):
            await socket.send(json.dumps({"type": "AUTH", "token": token}))
            await receive(socket, "RESEND_DONE")

        # The sender chooses the id. A message sent again with the same id is stored once, so a retry is safe.
        name = secrets.token_hex(16)
        message = {"type": "SINGLE_CHAT", "clientMsgId": name, "to": bob, "body": "Hello, Bob"}
        await a.send(json.dumps(message))
        saved, received = await receive(a, "ACK"), await receive(b, "SINGLE_CHAT")
        print(f"saved as {saved['msgSeq']}, bob heard: {received['body']}")

        # Bob marks it and everything before it as read.
        read = {"type": "ACK", "ackType": "read", "serverMsgId": received["serverMsgId"]}
        await b.send(json.dumps(read))
        print("alice hears:", (await receive(a, "ACK"))["ackType"])


try:
    asyncio.run(main())
except OSError as error:
    sys.exit(f"No answer from {' or '.join(SERVERS)} ({error}). Is the server running? `make run` starts one.")
