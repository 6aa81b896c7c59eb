#!/usr/bin/env bash
# Holds the gateway against real programs: one part per function, all of them, or those
# that are named. Installs from the distribution what a part needs.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

# need WHAT PACKAGE...: installs the packages unless the function or program WHAT says
# that they are there.
need() {
	local what=$1
	shift
	if type -t "$what" >/dev/null && { [ "$(type -t "$what")" != function ] || "$what"; }; then return; fi
	echo "Installing what the part needs: $*"
	can_install && install_packages "$@" >/dev/null && return
	echo "This part needs $*, and this script could not install it (it needs root and apt)." >&2
	echo "On Debian and Ubuntu: sudo apt-get install --no-install-recommends $*" >&2
	exit 1
}

has_tomcat() { [ -e /usr/share/java/tomcat10-embed-core.jar ]; }

# paths: how real servers read the spellings of a path; writes the table that
# front ends are tested with.
paths() {
	PATH=$PATH:/usr/sbin # where nginx is, and users do not look
	command -v nginx >/dev/null || { need nginx nginx; update-rc.d nginx disable || true; } # nor at the next boot
	need node nodejs
	need javac default-jdk-headless
	need has_tomcat libtomcat10-embed-java
	(cd bench && "${GO:-go}" run ./conformance/paths -out ../internal/dev/readings/readings.tsv)
}

# h2spec: the conformance suite of HTTP/2; fails where plain net/http does not.
h2spec() { (cd bench && "${GO:-go}" run ./conformance/h2spec); }

# slow: clients that stand still, over HTTP/1 and HTTP/2.
slow() {
	need slowhttptest slowhttptest
	(cd bench && "${GO:-go}" run ./conformance/slow)
}

has_lua_socket() { [ -e /usr/share/lua/5.3/socket.lua ]; } # that of Apache's mod_lua

# doors: the proxies of docs/front-ends.md, those of make test and more. Traefik is tested
# where it is installed; the distribution does not have it.
doors() {
	PATH=$PATH:/usr/sbin
	local daemon more="caddy apache2"
	for daemon in nginx haproxy caddy apache2; do
		command -v "$daemon" >/dev/null || { need "$daemon" "$daemon"; update-rc.d "$daemon" disable || true; } # nor at the next boot
	done
	need has_lua_socket lua-socket
	nginx -v
	haproxy -v | head -1
	echo "caddy $(caddy version)"
	apache2 -v | head -1
	if command -v traefik >/dev/null; then
		more+=" traefik"
		traefik version | head -1
	fi
	TEST_PROXIES=$more CI=true "${GO:-go}" test -count=1 ./internal/dev/proxies
}

# clients: Redis clients of npm, on the Redis protocol.
clients() {
	need node nodejs
	need npm npm
	(cd bench && "${GO:-go}" run ./conformance/clients)
}

parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(paths h2spec slow doors clients)
for part in "${parts[@]}"; do
	echo "== $part"
	"$part"
done
