"""Two people talk, in the numbered dialect: python3 examples/numbered.py http://127.0.0.1:8080

Needs the package `websockets`. Made from docs/protocol/numbered.md alone.
"""
import asyncio, base64, json, secrets, sys, urllib.request

import websockets

SERVER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"


def post(path, body, token=""):
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


def somebody(name):
    user_id, password = f"{name}-{secrets.token_hex(4)}", secrets.token_hex(16)
    post("/user/register", {"user_id": user_id, "nickname": name, "password": password})
    login = post("/auth/login", {"user_id": user_id, "password": password, "platform_id": 5})
    return user_id, login["token"]


def address(user_id, token):
    socket = SERVER.replace("http", "ws", 1) + "/ws"
    return f"{socket}?token={token}&send_id={user_id}&platform_id=5&operation_id=open&sdk_type=go"


async def ask(socket, number, data):
    data = base64.b64encode(json.dumps(data).encode()).decode()
    frame = {"req_identifier": number, "msg_incr": "1", "operation_id": "op", "data": data}
    await socket.send(json.dumps(frame))
    return await hear(socket, number)


async def hear(socket, number):
    while True:
        frame = json.loads(await asyncio.wait_for(socket.recv(), 10))
        assert frame["err_code"] == 0, frame
        if frame["req_identifier"] == number:
            return json.loads(base64.b64decode(frame["data"]))


async def main():
    (alice, alices_token), (bob, bobs_token) = somebody("alice"), somebody("bob")
    async with websockets.connect(address(alice, alices_token)) as a, \
               websockets.connect(address(bob, bobs_token)) as b:
        await ask(b, 1001, {"conversation_ids": []})
        say = {"client_msg_id": "1", "recv_id": bob, "session_type": 1, "msg_type": 1,
               "content": {"text": "Hello, Bob"}}
        saved = await ask(a, 1003, say)
        pushed = (await hear(b, 2001))["msgs"][saved["conversation_id"]][0]
        print(f"saved as {saved['seq']}, bob heard: {pushed['content']['text']}")
        mark = {"conversation_id": saved["conversation_id"], "read_seq": saved["seq"]}
        post("/conversation/mark_read", mark, bobs_token)
        print("alice hears: read up to", (await hear(a, 2004))["read_seq"])


asyncio.run(main())
