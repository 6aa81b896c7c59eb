package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// rulesText is one rule for every client; it has no rule without a quota.
func rulesText(q quota) string {
	if q.events == 0 {
		return ""
	}
	return fmt.Sprintf(`version: 1
rules:
  - { name: clients, per: ip, limits: { rate: %d/%s, algorithm: token_bucket } }
`, q.events, q.unit)
}

// tidegateCommand leaves everything as it is by default, but for the access log,
// which the others do not write either.
func tidegateCommand(q quota) func(*site, string, string) command {
	return func(s *site, dir, address string) command {
		c := command{program: s.tidegate, args: []string{
			"serve", "--listen.gateway=" + address, "--listen.admin=127.0.0.1:0",
			"--upstreams=http://" + s.upstream, "--log.access=off", "--drain=1s",
		}}
		if text := rulesText(q); text != "" {
			file := filepath.Join(dir, "rules.yaml")
			c.args = append(c.args, "--rules="+file)
			c.prepare = os.WriteFile(file, []byte(text), 0o600)
		}
		return c
	}
}
