#!/usr/bin/env bash
# Says whether the Go here can build Tidegate, and what to do when it cannot.
set -euo pipefail
cd "$(dirname "$0")/.."

need=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
get="install Go $need or newer from https://go.dev/dl/ and put its bin directory on your PATH"

if ! command -v "${GO:=go}" >/dev/null; then
	echo "Go is missing: $get." >&2
	exit 1
fi
# Not in this directory, where an older Go would fetch or refuse before it answers.
have=$(cd / && GOTOOLCHAIN=local "$GO" version | sed -n 's/^go version go\([0-9]*\.[0-9]*\).*/\1/p')
if [ -z "$have" ] || [ "$(printf '%s\n' "$need" "$have" | sort -V | head -1)" = "$need" ]; then
	exit 0 # new enough, or built from source without a number
fi
if [ "${have#1.}" -lt 21 ] || [ "$(cd / && "$GO" env GOTOOLCHAIN)" = local ]; then
	echo "Go $have is too old, Tidegate needs $need: $get." >&2
	[ "${have#1.}" -lt 21 ] || echo "Or let it fetch the right one by itself: GOTOOLCHAIN=auto make …" >&2
	exit 1
fi
echo "Go $have is too old, Tidegate needs $need; it can fetch that one by itself (GOTOOLCHAIN=auto)." >&2
if ! "$GO" version >&2; then
	echo "It could not: $get." >&2
	exit 1
fi
