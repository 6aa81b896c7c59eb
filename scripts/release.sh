#!/usr/bin/env bash
# Builds the binaries of a release into dist, with their checksums. CHECK=1 builds them again
# from a copy of the commit in another folder, and fails if one byte differs.
set -euo pipefail
cd "$(dirname "$0")/.."
export GO="${GO:-go}"
version=$(sed -n 's/^const release = "\(.*\)"$/\1/p' internal/cli/version.go)
[ -n "$version" ] || { echo "internal/cli/version.go says no version." >&2; exit 1; }
if git rev-parse -q --verify HEAD >/dev/null 2>&1 && [ -n "$(git status --porcelain)" ]; then
	echo "Files were changed since the last commit: the revision in the binaries says so (+)." >&2
fi

build() { # into the folder $1
	for os in linux darwin; do
		for arch in amd64 arm64; do
			echo "$os/$arch"
			GOOS=$os GOARCH=$arch scripts/build.sh "$1/tidegate_${version}_${os}_$arch"
		done
	done
	(cd "$1" && LC_ALL=C sha256sum tidegate_* >SHA256SUMS)
}
command -v sha256sum >/dev/null || sha256sum() { shasum -a 256 "$@"; }

rm -rf dist
mkdir dist
build "$PWD/dist"
cat dist/SHA256SUMS
if [ -n "${CHECK:-}" ]; then
	copy=$(mktemp -d)
	trap 'rm -rf "$copy"' EXIT
	git clone -q . "$copy/elsewhere"
	cd "$copy/elsewhere"
	mkdir dist
	build "$PWD/dist"
	diff "$OLDPWD/dist/SHA256SUMS" dist/SHA256SUMS
	echo "The same bytes from another folder."
fi
