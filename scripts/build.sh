#!/usr/bin/env bash
# Builds the command as it is released, into the file $1: static, and the same bytes from
# the same commit and Go version, wherever it is built. GOOS and GOARCH choose another system.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}"

vcs=false # without a repository, as in an image, there is no revision to stamp
! git rev-parse --verify -q HEAD >/dev/null 2>&1 || vcs=auto
CGO_ENABLED=0 GOFLAGS='' "$GO" build -trimpath -buildvcs="$vcs" -ldflags='-s -w -buildid=' -o "${1:?name the file to write}" ./cmd/tidegate
