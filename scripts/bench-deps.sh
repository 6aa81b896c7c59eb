#!/usr/bin/env bash
# Installs from the distribution what bench-gateway and bench-doors need and this machine lacks,
# without starting any daemon. Where it may not, it says what is missing and fails:
# a comparison without the rival is none.
set -euo pipefail
. "$(dirname "$0")/packages.sh"
PATH=$PATH:/usr/sbin # where nginx is, and users do not look

find_missing() {
	packages=()
	local program
	for program in nginx wrk; do
		command -v "$program" >/dev/null || packages+=("$program")
	done
	command -v h2load >/dev/null || packages+=(nghttp2-client)
}

find_missing
if [ ${#packages[@]} -eq 0 ]; then exit 0; fi

if can_install; then
	echo "Installing what the benchmark needs: ${packages[*]}"
	log=$(mktemp)
	if ! install_packages "${packages[@]}" >"$log" 2>&1; then
		cat "$log" >&2
	elif [[ " ${packages[*]} " == *" nginx "* ]]; then
		update-rc.d nginx disable || true # nor at the next boot
	fi
	rm -f "$log"
	find_missing
	if [ ${#packages[@]} -eq 0 ]; then exit 0; fi
fi

{
	echo "The benchmark misses ${packages[*]}, and this script could not install it (it needs root and apt)."
	echo "On Debian and Ubuntu: sudo apt-get install --no-install-recommends ${packages[*]}"
} >&2
exit 1
