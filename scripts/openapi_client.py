"""Ten things asked of a server with the Python client that was made from docs/openapi.json."""

import sys

from nexo_client import AuthenticatedClient, Client
from nexo_client.api.accounts import get_user_info, post_auth_login, post_user_register, put_user_update
from nexo_client.api.conversations import get_conversation_list, post_conversation_mark_read
from nexo_client.api.groups import get_group_members, post_group_create
from nexo_client.api.history import get_single_chat_message_since
from nexo_client.api.messages import get_msg_pull, post_msg_send
from nexo_client.models import (
    CreateGroupBody,
    LoginBody,
    MarkReadBody,
    ProfileBody,
    Refusal,
    RegisterBody,
    SendBody,
)

URL = sys.argv[1]
PASSWORD = "correct horse"
anybody = Client(base_url=URL)


def person(name):
    body = RegisterBody(user_id=name, nickname=name, password=PASSWORD)
    assert post_user_register.sync(client=anybody, body=body).data.user_id == name
    body = LoginBody(user_id=name, password=PASSWORD, platform_id=5)
    signed = post_auth_login.sync(client=anybody, body=body)
    return AuthenticatedClient(base_url=URL, token=signed.data.token)


anna, paul = person("py-anna"), person("py-paul")
said = SendBody.from_dict({
    "client_msg_id": "1", "session_type": 1, "recv_id": "py-paul", "msg_type": 1,
    "content": {"text": "hello"}, "extra": {"colour": "red"},
})
sent = post_msg_send.sync(client=anna, body=said).data
assert sent.seq == 1 and sent.extra["colour"] == "red", sent

pulled = get_msg_pull.sync(client=paul, conversation_id=sent.conversation_id).data
assert [message.content["text"] for message in pulled.messages] == ["hello"]
since = get_single_chat_message_since.sync(client=paul, peer_user_id="py-anna")
assert since.data[0].content == "hello" and since.has_more is False
lines = get_conversation_list.sync(client=paul, with_last_message=True).data
assert lines.list_[0].unread_count == 1 and lines.list_[0].peer_user_id == "py-anna", lines
read = MarkReadBody(conversation_id=sent.conversation_id, read_seq=1)
assert post_conversation_mark_read.sync(client=paul, body=read).data.unread_count == 0
renamed = put_user_update.sync(client=anna, body=ProfileBody(nickname="Anna L."))
assert renamed.data.nickname == "Anna L."
assert get_user_info.sync(client=paul, user_id="py-anna").data.nickname == "Anna L."
group = post_group_create.sync(client=anna, body=CreateGroupBody(name="Friends", member_ids=["py-paul"])).data
members = get_group_members.sync(client=paul, group_id=group.group_id).data
assert members.total == 2 and [it.user_id for it in members.list_] == ["py-anna", "py-paul"], members
refused = get_user_info.sync(client=paul, user_id="nobody")
assert isinstance(refused, Refusal) and refused.reason == "user_not_found", refused
print("the Python client works")
