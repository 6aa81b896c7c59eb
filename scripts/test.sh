#!/usr/bin/env bash
# Vets and tests all modules but tools. COUNT repeats each test, ARGS are passed to go test.
# TIDEGATE_LONG=1 is for tests that try more where there is time.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}"

timeout=25m
[ "${TIDEGATE_LONG:-}" != 1 ] || timeout=6h
# A busy machine takes longer than go test allows a package. Each module is vetted as a whole before.
# Without debug information the linker takes a third less for each binary.
args=(-timeout=$timeout -vet=off -ldflags=-w ${COUNT:+-count="$COUNT"})
if [ -n "${ARGS:-}" ]; then
	read -ra more <<<"$ARGS"
	args+=("${more[@]}")
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TIDEGATE_SKIPPED=$scratch/skipped # see internal/dev/testdep
touch "$TIDEGATE_SKIPPED"

# Nobody debugs these binaries: without debug information the compiler takes a quarter less.
race=(-race -gcflags=all=-dwarf=false)
if ! CGO_ENABLED=1 "$GO" test "${race[@]}" -run '^$' ./internal/dev/testdep >"$scratch/race" 2>&1; then
	cat "$scratch/race" >&2
	if [ "${CI:-}" = true ]; then
		echo "CI=true: the race detector does not work here, and that is a failure." >&2
		exit 1
	fi
	echo "*** THE RACE DETECTOR DOES NOT WORK HERE (see above): testing without it. ***" >&2
	race=()
else
	export GORACE="atexit_sleep_ms=50 ${GORACE:-}" # of a second, that every process of the tests would wait at its end
fi

# raced is go test with the race detector, if it works here.
raced() { ${race[@]+env CGO_ENABLED=1} "$GO" test ${race[@]+"${race[@]}"} "${args[@]}" "$@"; }

failed=
"$GO" vet ./...
# The browser's story waits for a minute to pass: meanwhile others go on. It tests a program that it builds, of which go
# test does not know: no result is taken from its cache.
(cd browser && "$GO" vet ./... && "$GO" test -count=1 "${args[@]}" ./...) >"$scratch/browser" 2>&1 &
browser=$!
(cd bench && "$GO" vet ./... && "$GO" test "${args[@]}" ./...) || failed="the bench module"
# Tests of bench measure, so that only the browser's run beside them. Those of the adapters wait now and then.
{
	status=0
	(cd adapters && "$GO" vet ./... && "$GO" test "${args[@]}" ./...) || status=1
	(cd adapters/grpclimit && "$GO" vet ./... && raced ./...) || status=1
	exit $status
} >"$scratch/adapters" 2>&1 &
adapters=$!
# The race detector allocates, so what must not allocate is tested without it. And it makes loops of one goroutine a
# hundred times slower, where it can find nothing. So tests of such loops are skipped under it, by testdep.SkipUnderRace,
# and those parts of the conformance of stores; other tests do less under it. All of these are run without it.
sequential='^TestConformance/^(adjust|change|floor|gate|model|retry|rollout|time|vector|wait)(#[0-9]+)?$'
if [ ${#race[@]} -gt 0 ]; then
	"$GO" test -run Alloc ./internal/front/checkapi ./httplimit ./internal/lang/route || failed="${failed:+$failed and }allocations"
	cut="./internal/chain/node ./store/memory ./internal/chain/eventual ./internal/chain/split ./internal/chain/sim ./internal/algo ./internal/front/rlqs/ledger ./rules ./rules/lint ."
	"$GO" test "${args[@]}" $cut || failed="${failed:+$failed and }what is cut under the race detector"
	skipping=$(grep -rlE --include='*_test.go' '^func TestConformance|testdep\.SkipUnderRace\(t\)' client fleet httplimit internal rules store)
	tests=$(awk '/^func Test/ { split($2, name, "(") } /testdep\.SkipUnderRace\(t\)/ { printf "%s|", name[1] }' $skipping)
	packages=$(dirname $skipping | sed 's|^|./|' | sort -u | grep -vxF "$(tr ' ' '\n' <<<"$cut")")
	"$GO" test -run "^(${tests}TestConformance.*)\$" "${args[@]}" $packages || failed="${failed:+$failed and }what is skipped under the race detector"
fi
wait "$browser" || failed="${failed:+$failed and }the browser module"
wait "$adapters" || failed="${failed:+$failed and }an adapters module"
cat "$scratch/browser" "$scratch/adapters"
# The longest packages begin first, so that none of them is left to run alone in the end. Some wait for servers more than
# they compute, so one package more is tested at a time than there are cores.
beside=-p=$(($(getconf _NPROCESSORS_ONLN) + 1))
raced "$beside" ${race[@]+-skip "$sequential"} ./store/redis ./fleet ./internal/chain/node ./store/memory ./internal/serve ./internal/front/gateway ./internal/chain/eventual ./internal/cli ./client ./internal/serve/deferq ./... || failed="${failed:+$failed and }the main module"

sort -u "$TIDEGATE_SKIPPED"
if [ -n "$failed" ]; then
	echo "FAIL: $failed" >&2
	exit 1
fi
