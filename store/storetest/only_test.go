package storetest_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

func TestBuckets(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, now func() time.Time) tidegate.Store {
		return &Buckets{Now: now, levels: map[string]level{}}
	}, storetest.Only("token_bucket"))
}

// A store that does everything passes each algorithm and each part alone, and some together.
func TestOnlyOfAStoreThatDoesEverything(t *testing.T) {
	selections := [][]string{
		{"token_bucket"},
		{"leaky_bucket"},
		{"fixed_window"},
		{"sliding_log"},
		{"sliding_window"},
		{"sub_windows"},
		{"quota"},
		{"concurrency"},
		{"token_bucket", "fixed_window", "vectors", "returns", "changes"},
		{"sliding_log", "sub_windows", "vectors", "copies", "advisory", "floors", "clock_steps", "changes"},
		{"concurrency", "renewals", "returns"},
		{"quota", "vectors", "returns", "reservations", "resets"},
		{"sliding_log", "count_rejected"},
		{"token_bucket", "raw_time"},
	}
	for _, feature := range []string{"copies", "advisory", "floors", "waiting", "returns", "changes", "clock_steps", "misuse", "reservations", "resets"} {
		selections = append(selections, []string{"token_bucket", feature})
	}
	for _, parts := range selections {
		t.Run(strings.Join(parts, " "), func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(_ *testing.T, now func() time.Time) tidegate.Store {
				return memory.Open(memory.Config{Now: now})
			}, storetest.Only(parts...), storetest.Brief())
		})
	}
}

// The page shows the store that is tested here.
func TestPageShowsTheStore(t *testing.T) {
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, begin := range map[string]string{"bucket_test.go": "// Buckets is", "only_test.go": "func TestBuckets("} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, shown, _ := strings.Cut(string(code), begin)
		if file == "only_test.go" {
			shown, _, _ = strings.Cut(shown, "\n\n")
		} else if lines := strings.Count(shown, "\n"); lines > 60 {
			t.Errorf("the store has %d lines: the page says 60", lines)
		}
		if !strings.Contains(string(page), begin+strings.TrimRight(shown, "\n")) {
			t.Errorf("docs/stores.md does not show %s, from %q on", file, begin)
		}
	}
}
