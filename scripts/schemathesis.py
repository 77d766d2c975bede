"""Starts a server, fills it with people, groups and messages, and lets schemathesis ask.

It finds server errors, and statuses and bodies the document does not tell of. The debug build also ends a
connection whose refusal is not told of. EXAMPLES=30 of each operation; SEED=1 repeats a run.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

CHECKS = "not_a_server_error,status_code_conformance,response_schema_conformance"
SETTINGS = {
    "NEXO_LIMITS__USER_REQUESTS_PER_SECOND": "0",
    "NEXO_LIMITS__USER_SENDS_PER_SECOND": "0",
    "NEXO_ACCOUNTS__STRANGERS_PER_HOUR": "0",
    "NEXO_GROUPS__BY_STRANGERS_PER_HOUR": "0",
    "NEXO_LIMITS__REGISTRATIONS_PER_MINUTE": "1000000",
    "NEXO_AUTH__ARGON2_MEMORY_KIB": "8",
    "NEXO_AUTH__ARGON2_PASSES": "1",
}
# The kind of id in each field; schemathesis generates the rest.
NAMES = {
    "users": ["user_id", "peerUserId", "body.user_id", "body.recv_id", "body.user_ids[*]", "body.member_ids[*]", "body.mentions[*]"],
    "groups": ["group_id", "groupId", "body.group_id"],
    "codes": ["group_code", "body.group_code"],
    "conversations": ["conversation_id", "body.conversation_id", "cursor_conversation_id", "lastId"],
    "messages": ["server_msg_id", "body.server_msg_id", "body.reply_to_server_msg_id"],
}


class Server:
    def __init__(self, folder):
        self.log, self.data = folder / "log", folder / "data"
        command = ["target/debug/nexo", "serve", "--listen", "127.0.0.1:0", "--data", str(self.data)]
        environment = os.environ | SETTINGS
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log.open("w"), env=environment, text=True)
        line = self.process.stdout.readline()
        if "http://" not in line:
            sys.exit(f"the server did not start:\n{self.log.read_text()}")
        self.url = line.split()[-1]

    def post(self, path, token="", **body):
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        return json.load(urllib.request.urlopen(request))["data"]

    def person(self, name):
        self.post("/user/register", user_id=name, nickname=name, password="correct horse")
        return self.post("/auth/login", user_id=name, password="correct horse", platform_id=5)["token"]


def fill(server):
    """People, groups of every standing, and messages; returns the asker's token and what there is to name."""
    fuzz, bob, _ = (server.person(name) for name in ["fuzz", "bob", "carol"])
    known = {"users": ["fuzz", "bob", "carol"], "groups": [], "codes": [], "conversations": [], "messages": []}

    def say(token, number, **to):
        sent = server.post("/msg/send", token, client_msg_id=f"m{number}", msg_type=1, content={"text": "hello"}, **to)
        known["messages"].append(sent["server_msg_id"])
        known["conversations"].append(sent["conversation_id"])

    say(fuzz, 0, session_type=1, recv_id="bob")
    say(bob, 0, session_type=1, recv_id="fuzz")
    # Many, since some requests dissolve groups.
    for number in range(1, 41):
        owner, other = (fuzz, "bob") if number % 2 else (bob, "fuzz" if number % 4 else "carol")
        join_type = ["open", "approval", "invite"][number % 3]
        group = server.post("/group/create", owner, name=f"g{number}", member_ids=[other], join_type=join_type)
        if other == "fuzz" and number % 3 == 0:
            server.post("/group/set_role", owner, group_id=group["group_id"], user_id=other, role=1)
        known["groups"].append(group["group_id"])
        known["codes"].append(group["group_code"])
        say(owner, number, session_type=2, group_id=group["group_id"])
    return fuzz, known


def settings(folder, known):
    """Most of the time things are named that are there."""
    lines = []
    for name, values in known.items():
        lines += [f"[dictionaries.{name}]", f"values = {json.dumps(values)}"]
    lines.append("[parameters]")
    for name, fields in NAMES.items():
        lines += [f'"{field}" = {{ dictionary = "{name}", probability = 0.8 }}' for field in fields]
    file = folder / "schemathesis.toml"
    file.write_text("\n".join(lines))
    return file


def ask(server, config, token, *which):
    seed = ["--seed", os.environ["SEED"]] if "SEED" in os.environ else []
    tool = pathlib.Path(sys.executable).parent / "schemathesis"
    command = [tool, "--config-file", config, "run", f"{server.url}/openapi.json", "--checks", CHECKS]
    command += ["--max-examples", os.environ.get("EXAMPLES", "30"), "--continue-on-failure", "--no-color"]
    command += ["--header", f"Authorization: Bearer {token}", "--warnings", "off", *seed, *which]
    return subprocess.run(command).returncode == 0


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = Server(folder)
        try:
            token, known = fill(server)
            config = settings(folder, known)
            # Signing out would end the token that everything else needs.
            fine = ask(server, config, token, "--exclude-path", "/auth/logout", "--exclude-path", "/system/send")
            system = (server.data / "system.token").read_text().strip()
            fine &= ask(server, config, system, "--include-path", "/system/send")
        finally:
            server.process.terminate()
            server.process.wait()
        panics = [line for line in server.log.read_text().splitlines() if "panicked" in line or "does not tell" in line]
        print("\n".join(sorted(set(panics))))
        sys.exit(0 if fine and not panics else 1)


main()
