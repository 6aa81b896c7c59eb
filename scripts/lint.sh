#!/usr/bin/env bash
# Runs the linters pinned in tools/go.mod over the modules; any finding fails.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
: "${GO:=go}"
root=$PWD failed=

tool() { "$GO" tool -modfile="$root/tools/go.mod" "$@"; }
# Some of them print what they found and still end with 0.
silent() {
	local out
	out=$("$@") && [ -z "$out" ] && return
	printf '%s\nFAIL: %s\n' "$out" "$*" >&2
	failed=yes
}

silent tool gofumpt -l .
for module in . bench adapters adapters/grpclimit browser; do
	cd "$root/$module" || exit
	echo "lint $(sed -n 's/^module //p' go.mod)"
	silent "$GO" vet ./...
	silent tool staticcheck ./...
	# A library's callers are not here, so tests count as callers: what is left is called by nobody.
	silent tool deadcode -test ./...
done
[ -z "$failed" ]
