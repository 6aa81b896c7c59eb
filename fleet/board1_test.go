package fleet_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules"
)

// measure1 is what the first version that has measures reads of one.
type measure1 struct {
	ID      string            `json:"id"`
	Kind    string            `json:"kind"`
	As      map[string]string `json:"as"`
	Rule    string            `json:"rule"`
	Limits  []string          `json:"limits"`
	Until   time.Time         `json:"until"`
	Reason  string            `json:"reason"`
	Message string            `json:"message"`
	By      string            `json:"by"`
	At      time.Time         `json:"at"`
}

// row1 is how that version has a measure in Redis: REVISION WRITER KEPT MARK EXPIRES BODY.
var row1 = regexp.MustCompile(`^[1-9][0-9]* [0-9]+ [1-9][0-9]* (live|ended) ([0-9]+) (\{.*\})$`)

// During a rolling upgrade, instances of two versions share a board. What the first version that has
// one wrote holds here, what a later one may write stays as it is, and what this one writes can be
// read by the first.
func TestBoardOfOtherVersions(t *testing.T) {
	server := testdep.Redis(t)
	text, err := os.ReadFile("testdata/board1/redis.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		server.Do(strings.Split(strings.TrimSuffix(line, "\n"), "\t")...)
	}
	const table = "tg:board{tg:board}:"
	later := func() string {
		return server.Do("GET", table+"row:later-1") + server.Do("ZSCORE", "tg:board", "later-1")
	}
	laterWas := later()

	gate, s := following(t, "redis://"+server.Addr, fleet.Options{Name: "new"})
	b := boardOf(t, s)
	wantOrdered(t, "after a look", "ban-1 override-1 wider-1", b)
	passes := func(ip string) (n int) {
		for range 8 {
			if d := gate.Decide(t.Context(), &tidegate.Request{Method: "GET", Path: "/", Values: address(ip)}); d.OK {
				n++
			}
		}
		return n
	}
	testdep.Eventually(t, "it is in force", func() bool { return passes("10.0.0.6") == 0 })
	for ip, want := range map[string]int{
		"10.0.0.1": 5, // its override
		"10.0.0.2": 0, // banned
		"10.0.0.3": 2, // the rule
		"10.0.0.4": 2, // no longer banned
		"10.0.0.5": 2, // by a mark that only a later version knows
		"10.0.0.6": 0, // banned, with a field that this version does not know
	} {
		if got := passes(ip); got != want {
			t.Errorf("%s: %d of 8 pass, want %d", ip, got, want)
		}
	}
	lines, err := b.Logged(t.Context(), 10)
	if err != nil || len(lines) != 2 || !strings.Contains(lines[0], `"who":"alice"`) || !strings.Contains(lines[1], `"action":"end"`) {
		t.Errorf("the journal: %q, %v", lines, err)
	}

	until := time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
	m := rules.Measure{
		ID: "new-1", Kind: rules.Override, As: map[string]string{"ip": "10.0.0.7"}, Rule: "api", Limits: []string{"7/day"},
		Until: until, Reason: "more", Message: "soon", By: "ann", At: time.Now().UTC(),
	}
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), board.Record{ID: m.ID, Body: body, Expires: until}); err != nil {
		t.Fatal(err)
	}
	written := func(mark string) {
		t.Helper()
		raw := server.Do("GET", table+"row:new-1")
		found := row1.FindStringSubmatch(raw)
		if found == nil || found[1] != mark {
			t.Fatalf("the first version does not read %q as %s", raw, mark)
		}
		var got measure1
		decoder := json.NewDecoder(strings.NewReader(found[3]))
		decoder.DisallowUnknownFields() // it would hold the measure without what such a field says
		if err := decoder.Decode(&got); err != nil || got.ID != m.ID || got.Kind != "override" || got.As["ip"] != "10.0.0.7" ||
			got.Rule != "api" || len(got.Limits) != 1 || !got.Until.Equal(until) || got.By != "ann" || !got.At.Equal(m.At) {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
		if score := server.Do("ZSCORE", "tg:board", "new-1"); score == "" || server.Do("ZSCORE", table+"keep", "new-1") == "" {
			t.Error("the first version does not list it")
		}
	}
	written("live")
	for _, id := range []string{"new-1", "ban-1"} {
		if _, err := b.End(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	written("ended")
	if got := passes("10.0.0.2"); got != 2 {
		t.Errorf("a ban of the first version was ended here, and %d pass", got)
	}
	if now := later(); now != laterWas {
		t.Errorf("what a later version wrote was %s, and is %s", laterWas, now)
	}
}
