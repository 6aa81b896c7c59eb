# shellcheck shell=bash
# Sourced by the scripts that install what the distribution has: install_packages
# does, as root and with apt, and starts no daemon.

policy=/usr/sbin/policy-rc.d # asked by every package before it starts a service
kept=$policy.before-tidegate

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

restore_policy() {
	rm -f "$policy"
	if [ -e "$kept" ]; then mv "$kept" "$policy"; fi
}

install_packages() (
	export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
	trap restore_policy EXIT
	if [ -e "$policy" ] && [ ! -e "$kept" ]; then mv "$policy" "$kept" || exit; fi
	printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || exit # set -e is off under an if
	apt-get update -qq || echo "apt-get update failed; trying with the lists at hand" >&2
	apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
)
