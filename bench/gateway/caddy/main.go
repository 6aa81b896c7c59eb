// Command caddy is Caddy with its rate-limit module, as xcaddy builds it. It is a
// module of its own: what Caddy depends on stays out of everybody else's build.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/mholt/caddy-ratelimit"
)

func main() { caddycmd.Main() }
