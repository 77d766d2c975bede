"""A backend that brings its own users: makes them, signs them in, hands out tokens. Needs no packages.

    nexo key create --name shop --scope backend > backend.key
    python3 examples/backend.py http://127.0.0.1:8080 backend.key
"""

import json
import sys
import urllib.request

SERVER, KEY = sys.argv[1], open(sys.argv[2]).read().strip()


def ask(method, path, body=None, token=KEY):
    request = urllib.request.Request(
        SERVER + path,
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


# Whenever somebody changes in your own database: one request makes or changes them here.
for user_id, name in [("customer-17", "Ana"), ("customer-18", "Ben")]:
    ask("PUT", f"/admin/users/{user_id}", {"nickname": name})

# Whenever somebody opens the chat in your app: your backend has checked who they are.
tokens = {}
for user_id in ["customer-17", "customer-18"]:
    signed_in = ask("POST", f"/admin/users/{user_id}/login", {"platform_id": 5})
    tokens[user_id] = signed_in["token"]  # your app gives it to the SDK

message = {
    "client_msg_id": "order-4711", "session_type": 1, "recv_id": "customer-18",
    "msg_type": 1, "content": {"text": "Hello, Ben"},
}
saved = ask("POST", "/msg/send", message, token=tokens["customer-17"])
found = ask("GET", "/single-chat/message/cursor?peerUserId=customer-17", token=tokens["customer-18"])
print(f"saved as {saved['seq']}, Ben reads: {found[0]['content']}")
