package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tidegate.dev/tidegate/bench/internal/served"
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

// Where the access log goes: nowhere, as with the others, or to a file in the folder of
// the server.
const (
	noLog     = "off"
	accessLog = "access.log"
)

// tidegateCommand leaves everything as it is by default, but for the access log.
func tidegateCommand(q quota, log string) func(*site, string, string) command {
	return func(s *site, dir, address string) command {
		c := command{program: s.tidegate, args: []string{
			"serve", "--listen.gateway=" + address, "--listen.admin=127.0.0.1:0",
			"--upstreams=http://" + s.upstream, "--log.access=" + log, "--drain=1s",
		}}
		if text := rulesText(q); text != "" {
			file := filepath.Join(dir, "rules.yaml")
			c.args = append(c.args, "--rules="+file)
			c.prepare = os.WriteFile(file, []byte(text), 0o600)
		}
		return c
	}
}

// tidegateTLSCommand returns the same with a limit, TLS and HTTP/2.
func tidegateTLSCommand(s *site, dir, address string) command {
	cert, key, err := served.Certificate(dir)
	if err != nil {
		return command{prepare: err}
	}
	c := tidegateCommand(plenty, noLog)(s, dir, address)
	c.args = append(c.args, "--tls.cert="+cert, "--tls.key="+key)
	return c
}

// tidegateManyCommand returns the same with a limit and as many unused connections as nginx keeps.
func tidegateManyCommand(s *site, dir, address string) command {
	c := tidegateCommand(plenty, noLog)(s, dir, address)
	c.args = append(c.args, fmt.Sprintf("--keep_alive.connections=%d", keptConnections))
	return c
}

// checkLog reports lines of the access log that are missing: a log that drops them costs
// nothing.
func checkLog(e *entrant) error {
	lines := int64(0)
	for range 50 { // what is not yet written is soon
		text, err := os.ReadFile(filepath.Join(filepath.Dir(e.server.Log), accessLog))
		if err != nil {
			return err
		}
		if lines = int64(bytes.Count(text, []byte{'\n'})); lines >= e.asked {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s: %d requests have %d lines in the access log, so that the comparison is void", e.name, e.asked, lines)
}
