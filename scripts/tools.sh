#!/bin/sh
# Installs what is needed in addition to Rust and Node. The packages' own services are not started, now or at boot.
#
#   scripts/tools.sh cluster    MariaDB and Redis, which `make cluster` starts itself
#   scripts/tools.sh            also what the tests need: OpenSSL, a browser, and Python packages in target/venv
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
missing=
if ! command -v mariadbd >/dev/null || ! command -v mariadb >/dev/null; then
    missing="$missing mariadb-server mariadb-client"
fi
if ! command -v redis-server >/dev/null || ! command -v redis-cli >/dev/null; then
    missing="$missing redis-server redis-tools"
fi
if [ "${1:-}" != cluster ]; then
    command -v openssl >/dev/null || missing="$missing openssl"
    command -v chromium >/dev/null || missing="$missing chromium"
fi

# What is started at boot: by systemd, or by the older scripts.
at_boot() {
    find /etc/systemd/system /etc/rc[2-5].d -type l \( -path '/etc/systemd/*' -o -name 'S*' \) 2>/dev/null | sort
}

if [ -n "$missing" ]; then
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    before=$(at_boot)
    $as_root apt-get update -qq
    # Packages ask this script whether they may start their services, under systemd too: 101 is no.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
        $as_root chmod 755 "$policy"
        # shellcheck disable=SC2064 # now, not when it ends
        trap "$as_root rm -f '$policy'" EXIT
    fi
    # shellcheck disable=SC2086 # a list of names
    $as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $missing
    # Packages enable their services at boot, and those of what they depend on: the machine stays as it was.
    for link in $(at_boot); do
        case "$before" in *"$link"*) continue ;; esac
        case "$link" in
            /etc/rc*) $as_root update-rc.d "${link##*/S??}" disable 2>/dev/null || true ;;
            *) $as_root rm -f "$link" ;;
        esac
    done
fi
if [ "${1:-}" != cluster ]; then
    scripts/venv target/venv websockets==15.0.1 PyYAML==6.0.2
fi
