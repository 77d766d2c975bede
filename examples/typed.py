"""Two people talk, in the typed dialect: python3 examples/typed.py http://127.0.0.1:8080
With a second address, Bob is there instead: two nodes of one cluster.

Needs the package `websockets`. Made from docs/protocol/typed.md alone.
"""
import asyncio, json, secrets, sys, urllib.request

import websockets

SERVERS = sys.argv[1:] or ["http://127.0.0.1:8080"]
ALICES, BOBS = SERVERS[0], SERVERS[-1]


def post(server, path, body):
    request = urllib.request.Request(server + path, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


def somebody(server, name):
    user_id, password = f"{name}-{secrets.token_hex(4)}", secrets.token_hex(16)
    post(server, "/user/register", {"user_id": user_id, "nickname": name, "password": password})
    login = post(server, "/auth/login", {"user_id": user_id, "password": password, "platform_id": 5})
    return user_id, login["token"]


async def hear(socket, kind):
    while True:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 10))
        if frame["type"] == kind:
            return frame


async def main():
    (alice, alices_token), (bob, bobs_token) = somebody(ALICES, "alice"), somebody(BOBS, "bob")
    a_address, b_address = (server.replace("http", "ws", 1) + "/ws" for server in (ALICES, BOBS))
    async with websockets.connect(a_address) as a, websockets.connect(b_address) as b:
        for socket, token in ((a, alices_token), (b, bobs_token)):
            await socket.send(json.dumps({"type": "AUTH", "token": token}))
            await hear(socket, "RESEND_DONE")
        say = {"type": "SINGLE_CHAT", "clientMsgId": "1", "to": bob, "body": "Hello, Bob"}
        await a.send(json.dumps(say))
        saved, heard = await hear(a, "ACK"), await hear(b, "SINGLE_CHAT")
        print(f"saved as {saved['msgSeq']}, bob heard: {heard['body']}")
        read = {"type": "ACK", "ackType": "read", "serverMsgId": heard["serverMsgId"]}
        await b.send(json.dumps(read))
        print("alice hears:", (await hear(a, "ACK"))["ackType"])


asyncio.run(main())
