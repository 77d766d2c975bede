#!/bin/sh
# Installs what the tests need beside Rust: Python with `websockets`, for the examples.
set -eu
if python3 -c 'import websockets' 2>/dev/null; then
    exit 0
fi
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
$as_root apt-get update -qq
$as_root apt-get install -y -qq --no-install-recommends python3 python3-websockets
