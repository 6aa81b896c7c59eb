#!/bin/sh
# Works off one request of a Redis Stream: worker.sh 127.0.0.1 6379 NAME. Prints its body.
set -e
cli() { redis-cli --raw -h "$host" -p "$port" "$@"; }
host=$1 port=$2 stream=$3
cli XGROUP CREATE "$stream" workers 0 MKSTREAM >/dev/null 2>&1 || true
entry=$(cli XREADGROUP GROUP workers sh COUNT 1 STREAMS "$stream" '>')
[ -n "$entry" ] || exit 1
id=$(echo "$entry" | sed -n 2p)
field() { echo "$entry" | sed -n "/^$1\$/{n;p;q;}"; }
[ "$(field v)" = 1 ] || exit 1
echo "$(field idempotency_key) $(field method) $(field url)"
echo "$entry" | sed '1,/^body$/d'
cli XACK "$stream" workers "$id" >/dev/null
cli XDEL "$stream" "$id" >/dev/null
