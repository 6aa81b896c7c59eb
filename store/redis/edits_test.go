package redis

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/edits"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A thousand edits of rule files of each kind, on two nodes that share their counters. Where
// there is little time, it is 200: those of package rules are a thousand.
func TestThousandEdits(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	server := testdep.Redis(t)
	edits.Run(t, testdep.Longer(200, 1000), func(t *testing.T, now func() time.Time) []tidegate.Store {
		c := Config{Addrs: []string{server.Socket}, pretend: now}
		s := openTest(t, c)
		return []tidegate.Store{s, beside(t, s, c)}
	})
}

// The same of everything that a rule says about its limits.
func TestThousandWideEdits(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	edits.RunWide(t, testdep.Longer(200, 1000), func(t *testing.T, now func() time.Time) []tidegate.Store {
		c := Config{Addrs: []string{server.Socket}, pretend: now}
		s := openTest(t, c)
		return []tidegate.Store{s, beside(t, s, c)}
	})
}
