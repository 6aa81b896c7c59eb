#!/usr/bin/env bash
# Installs from the distribution what the tests need and this machine lacks,
# without starting any daemon. Where it may not, it says what is missing: the
# tests that need it are then skipped, or fail when CI=true.
set -euo pipefail

. "$(dirname "$0")/packages.sh"
PATH=$PATH:/usr/sbin # where nginx and haproxy are, and users do not look

# A program, what proves that it is there, and its Debian packages.
compiles() { echo '#include <stdlib.h>
int main(void) { return 0; }' | ${CC:-gcc} -x c -o /dev/null - 2>/dev/null; }
certificates() { [ "$(uname)" != Linux ] || [ -n "${SSL_CERT_FILE:-}" ] || [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ]; }

find_missing() {
	missing=() packages=()
	command -v redis-server >/dev/null || { missing+=("redis-server"); packages+=(redis-server); }
	command -v redis-cli >/dev/null && command -v redis-benchmark >/dev/null || { missing+=("redis-cli and redis-benchmark"); packages+=(redis-tools); }
	compiles || { missing+=("a C compiler (the race detector needs it)"); packages+=(gcc libc6-dev); }
	command -v curl >/dev/null || { missing+=("curl"); packages+=(curl); }
	command -v h2load >/dev/null || { missing+=("h2load"); packages+=(nghttp2-client); }
	command -v nginx >/dev/null || { missing+=("nginx"); packages+=(nginx); }
	command -v haproxy >/dev/null || { missing+=("haproxy"); packages+=(haproxy); }
	command -v etcd >/dev/null || { missing+=("etcd"); packages+=(etcd-server); }
	command -v prometheus >/dev/null && command -v promtool >/dev/null || { missing+=("prometheus and promtool"); packages+=(prometheus); }
	command -v systemd-analyze >/dev/null && [ -x /bin/kill ] || { missing+=("systemd-analyze, and the kill that units call (nothing of systemd is started)"); packages+=(systemd procps); }
	command -v fish >/dev/null && command -v zsh >/dev/null || { missing+=("fish and zsh (tab completion)"); packages+=(fish zsh); }
	command -v chromium >/dev/null || { missing+=("chromium"); packages+=(chromium); }
	command -v npm >/dev/null || { missing+=("npm"); packages+=(npm); }
	certificates || { missing+=("certificates of the public authorities"); packages+=(ca-certificates); }
}

# axe-core, for the tests of the dashboard: pinned, with its hash, in browser/package-lock.json.
fetch_axe() {
	local folder
	folder=$(dirname "$0")/../browser
	[ -e "$folder/node_modules/axe-core/axe.min.js" ] || ! command -v npm >/dev/null ||
		(cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --silent) ||
		echo "axe-core could not be fetched: the accessibility of the dashboard is not tested." >&2
}

find_missing
if [ ${#missing[@]} -eq 0 ]; then fetch_axe; exit 0; fi

if can_install; then
	echo "Installing what the tests need: ${packages[*]}"
	log=$(mktemp)
	if ! install_packages "${packages[@]}" >"$log" 2>&1; then
		cat "$log" >&2
	else
		for daemon in redis-server nginx haproxy prometheus; do
			[[ " ${packages[*]} " != *" $daemon "* ]] || update-rc.d "$daemon" disable || true # nor at the next boot
		done
		[[ " ${packages[*]} " != *" etcd-server "* ]] || update-rc.d etcd disable || true
	fi
	rm -f "$log"
	find_missing
	if [ ${#missing[@]} -eq 0 ]; then fetch_axe; exit 0; fi
fi

{
	echo "The tests miss, and this script could not install (it needs root and apt):"
	printf '  - %s\n' "${missing[@]}"
	echo "On Debian and Ubuntu: sudo apt-get install --no-install-recommends ${packages[*]}"
} >&2
if [ "${CI:-}" = true ]; then
	echo "CI=true: something missing is a failure." >&2
	exit 1
fi
echo "Tests that need them are skipped, and listed at the end." >&2
