"""Two users exchange messages in the numbered dialect (docs/protocol/numbered.md).

Needs any Python from 3.9 on with the package `websockets`, and a running server (`make run`):

    python3 -m venv .venv && .venv/bin/pip install websockets
    .venv/bin/python examples/numbered.py                          # talks to http://127.0.0.1:8080
    .venv/bin/python examples/numbered.py https://chat.example.com

Each run makes two new accounts with random names.
"""
import asyncio
import base64
import json
import secrets
import sys
import urllib.error
import urllib.request

try:
    import websockets
except ImportError:
    sys.exit("This needs the package `websockets`; the lines at the top of this file say how to get it.")

SERVER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
# The numbers of operations and pushes.
HIGHEST_SEQS, SEND, PUSHED, READ = 1001, 1003, 2001, 2004


def post(path, body, token=""):
    """Sends an HTTP request. Every answer is an envelope; returns its `data`."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as refusal:
        sys.exit(f"{path} was refused: {refusal.read().decode()}")


def register_and_login(name):
    """Registers and signs in an account; returns its id and the token to connect with."""
    user_id, password = f"{name}-{secrets.token_hex(4)}", secrets.token_hex(16)
    post("/user/register", {"user_id": user_id, "nickname": name, "password": password})
    login = post("/auth/login", {"user_id": user_id, "password": password, "platform_id": 5})
    return user_id, login["token"]


def address(user_id, token):
    """The URL to connect to; in this dialect it carries the token."""
    socket = SERVER.replace("http", "ws", 1) + "/ws"
    return f"{socket}?token={token}&send_id={user_id}&platform_id=5&operation_id=open&sdk_type=go"


async def request(socket, number, data):
    """Sends an envelope, whose `data` is JSON in base64, and waits for the answer with the same number."""
    data = base64.b64encode(json.dumps(data).encode()).decode()
    frame = {"req_identifier": number, "msg_incr": "1", "operation_id": "op", "data": data}
    await socket.send(json.dumps(frame))
    return await receive(socket, number)


async def receive(socket, number):
    """The data of the next envelope with this number; earlier ones are skipped."""
    while True:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 10))
        if frame["err_code"] != 0:
            sys.exit(f"refused: {frame['err_code']} {frame['err_msg']}")
        if frame["req_identifier"] == number:
            return json.loads(base64.b64decode(frame["data"]))


async def main():
    (alice, alices_token), (bob, bobs_token) = register_and_login("alice"), register_and_login("bob")
    async with websockets.connect(address(alice, alices_token)) as a, \
               websockets.connect(address(bob, bobs_token)) as b:
        # Pushes start once the first request is answered.
        await request(b, HIGHEST_SEQS, {"conversation_ids": []})

        # The sender chooses the id. A message sent again with the same id is stored once, so a retry is safe.
        message = {"client_msg_id": secrets.token_hex(16), "recv_id": bob, "session_type": 1,
               "msg_type": 1, "content": {"text": "Hello, Bob"}}
        saved = await request(a, SEND, message)
        pushed = (await receive(b, PUSHED))["msgs"][saved["conversation_id"]][0]
        print(f"saved as {saved['seq']}, bob heard: {pushed['content']['text']}")

        # Bob marks it and everything before it as read. Operations without a number are HTTP paths.
        mark = {"conversation_id": saved["conversation_id"], "read_seq": saved["seq"]}
        post("/conversation/mark_read", mark, bobs_token)
        print("alice hears: read up to", (await receive(a, READ))["read_seq"])


try:
    asyncio.run(main())
except OSError as error:
    sys.exit(f"No answer from {SERVER} ({error}). Is the server running? `make run` starts one.")
