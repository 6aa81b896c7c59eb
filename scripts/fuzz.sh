#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (60s), one after the other. FUZZ selects by name.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}" "${FUZZ:=^Fuzz}" "${FUZZTIME:=60s}"

list=$("$GO" test -list "$FUZZ" ./...)
targets=() names=()
while read -r word rest; do
	case $word in
	Fuzz*) names+=("$word") ;;
	ok)
		for name in ${names[@]+"${names[@]}"}; do targets+=("${rest%%[[:space:]]*} $name"); done
		names=()
		;;
	esac
done <<<"$list"
if [ ${#targets[@]} -eq 0 ]; then
	echo "No fuzz target matches $FUZZ." >&2
	exit 1
fi

n=0 failed=()
for target in "${targets[@]}"; do
	read -r package name <<<"$target"
	echo "[$((++n))/${#targets[@]}] $name in $package for $FUZZTIME"
	"$GO" test -run '^$' -fuzz "^$name\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 1s "$package" || failed+=("$name in $package")
done
if [ ${#failed[@]} -gt 0 ]; then
	printf 'FAIL: %s\n' "${failed[@]}" >&2
	exit 1
fi
echo "All ${#targets[@]} fuzz targets found nothing."
