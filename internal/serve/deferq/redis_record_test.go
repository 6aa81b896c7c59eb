package deferq

import (
	"errors"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// An entry in Redis that cannot be read, whatever of it that is, is listed and told of with the others; its line goes on, and
// it becomes a dead letter.
func TestUnreadableRecordInRedis(t *testing.T) {
	for name, set := range map[string][]string{
		"record":            {"record", `{"v":1,`},
		"attempts":          {"attempts", "x"},
		"number":            {"n", "1.5"},
		"no number":         {"n", ""},
		"number and record": {"n", "x", "record", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			server := testdep.Redis(t, keepsAll...)
			r := openRedis(t, "redis://"+server.Addr)
			bad, behind := entryOf("ann", "1"), entryOf("ann", "2")
			add(t, r, bad)
			add(t, r, behind)
			server.Do(append([]string{"HSET", "tg:deferred{orders}:entry:" + bad.ID}, set...)...)
			list := func(want State) {
				t.Helper()
				all := map[string]State{}
				err := r.List(t.Context(), func(e *Entry) bool {
					if all[e.ID] = e.State; e.ID == bad.ID && !strings.Contains(e.Reason, "its record") {
						t.Errorf("its reason is %q", e.Reason)
					}
					return true
				})
				if err != nil || len(all) != 2 || all[bad.ID] != want {
					t.Errorf("%v %v, want %s", all, err, want)
				}
			}
			list(Waiting)
			var unreadable *recordError
			for _, err := range []error{
				func() error { _, _, err := r.Get(t.Context(), bad.ID); return err }(),
				r.Retry(t.Context(), bad.ID, bad.Accepted), r.Drop(t.Context(), bad.ID, "x"),
			} {
				if !errors.As(err, &unreadable) {
					t.Errorf("%v", err)
				}
			}
			if e, err := r.Next(t.Context()); err != nil || e.ID != behind.ID {
				t.Fatalf("%+v %v", e, err)
			}
			list(Dead)
		})
	}
}
