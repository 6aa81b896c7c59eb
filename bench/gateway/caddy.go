package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// object is JSON in the making.
type object = map[string]any

// caddyConfig returns a proxy as one would tune it: as many connections to the upstream
// are kept as are used, and refusals, which Caddy logs by default, are not logged.
func caddyConfig(q quota, address, upstream string) object {
	limit := object{
		"handler": "rate_limit",
		"rate_limits": object{"clients": object{
			"key": "{http.request.remote.host}", "window": q.window, "max_events": q.events,
		}},
	}
	proxy := object{
		"handler":   "reverse_proxy",
		"upstreams": []object{{"dial": upstream}},
		"transport": object{"protocol": "http", "keep_alive": object{"max_idle_conns_per_host": 1024}},
	}
	server := object{
		"listen":          []string{address},
		"automatic_https": object{"disable": true},
		"routes":          []object{{"handle": []object{limit, proxy}}},
	}
	return object{
		"admin":   object{"disabled": true, "config": object{"persist": false}},
		"logging": object{"logs": object{"default": object{"level": "ERROR"}}},
		"apps":    object{"http": object{"servers": object{"bench": server}}},
	}
}

func caddyCommand(q quota) func(*site, string, string) command {
	return func(s *site, dir, address string) command {
		file := filepath.Join(dir, "caddy.json")
		text, err := json.Marshal(caddyConfig(q, address, s.upstream))
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		return command{
			program: s.caddy,
			args:    []string{"run", "--config", file},
			env:     []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir},
			prepare: err,
		}
	}
}

// versionOfCaddy is that of the modules it was built from.
func (s *site) versionOfCaddy(ctx context.Context) string {
	const caddy, limit = "github.com/caddyserver/caddy/v2", "github.com/mholt/caddy-ratelimit"
	versions := map[string]string{}
	out, _ := exec.CommandContext(ctx, goTool(), "version", "-m", s.caddy).Output()
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) >= 3 && f[0] == "dep" {
			versions[f[1]] = f[2]
		}
	}
	return fmt.Sprintf("Caddy %s with caddy-ratelimit %s, from their released modules", versions[caddy], versions[limit])
}
