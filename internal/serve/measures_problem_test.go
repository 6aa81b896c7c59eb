package serve

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/rules"
)

// A measure that cannot hold is told once, not at every change of others, and again if it comes
// back. What holds and what does not is counted by kind.
func TestProblemsOfMeasuresAreToldOnce(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte("version: 1\nidentify: { user: header X-User }\nrules: [{ name: api, per: user, limits: 1/hour }]\n"), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := &server{logs: logs{log: slog.New(slog.NewTextHandler(&log, nil))}, rules: &ruleSource{live: rules.NewLive(set)}}
	var told map[string]bool
	f := func(want int, bodies ...string) {
		t.Helper()
		log.Reset()
		var all []board.Record
		for i, body := range bodies {
			all = append(all, board.Record{ID: string(rune('a' + i)), Body: []byte(body)})
		}
		told = s.setMeasures(all, told)
		if got := strings.Count(log.String(), "\n"); got != want {
			t.Errorf("%d lines, want %d:\n%s", got, want, log.String())
		}
	}
	gone := `{"id":"gone","kind":"override","as":{"user":"1"},"rule":"nowhere","limits":["5/minute"]}`
	damaged := `{"id":`
	ban := `{"id":"ban","kind":"ban","as":{"user":"2"}}`
	more := `{"id":"more","kind":"override","as":{"user":"3"},"rule":"api","limits":["5/minute"]}`
	f(0)
	f(1, gone)
	f(1, gone, damaged)
	f(0, gone, damaged, ban)
	f(0, gone, damaged, ban, more)
	if got, want := s.rules.measures(), map[string]int{"ban": 1, "override": 1, telemetry.NotHolding: 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	f(0, ban)
	f(1, ban, gone)
}
