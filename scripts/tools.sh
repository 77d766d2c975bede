#!/bin/sh
# Installs what the tests need beside Rust: Python with `websockets` for the examples and `yaml` for
# deploy/, MariaDB, Redis and OpenSSL, which tests start themselves, and a browser. The packages' own services are not started.
set -eu
PATH=$PATH:/usr/sbin:/sbin
missing=
python3 -c 'import websockets' 2>/dev/null || missing="$missing python3 python3-websockets"
python3 -c 'import yaml' 2>/dev/null || missing="$missing python3 python3-yaml"
command -v mariadbd >/dev/null && command -v mariadb >/dev/null ||
    missing="$missing mariadb-server mariadb-client"
command -v redis-server >/dev/null && command -v redis-cli >/dev/null ||
    missing="$missing redis-server redis-tools"
command -v openssl >/dev/null || missing="$missing openssl"
command -v chromium >/dev/null || missing="$missing chromium"
[ -n "$missing" ] || exit 0
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
$as_root apt-get update -qq
# In run level 1 packages start nothing.
# shellcheck disable=SC2086 # a list of names
$as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $missing
