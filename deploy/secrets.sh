#!/bin/sh
# Makes the secrets of compose.yaml in deploy/secrets, once. The folder is for its owner alone; the files
# in it can be read by whoever a container runs as.
set -eu
cd "$(dirname "$0")"
[ ! -e secrets ] || { echo "deploy/secrets is there already." >&2; exit 1; }
random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
mkdir -m 700 secrets
cd secrets
umask 022
database=$(random)
redis=$(random)
echo "$database" >database_password
echo "mysql://nexo:$database@database:3306/nexo" >store
echo "redis://:$redis@redis:6379" >redis
echo "requirepass $redis" >redis_password
for name in jwt system metrics; do random >"$name"; done
