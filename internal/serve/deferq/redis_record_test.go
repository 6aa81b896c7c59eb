package deferq

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/chain"
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
			if err := r.Retry(t.Context(), bad.ID, bad.Accepted); !errors.Is(err, ErrUnreadable) && !errors.Is(err, ErrEnded) {
				t.Errorf("retried: %v", err)
			}
			if err := r.Drop(t.Context(), bad.ID, "x"); err != nil {
				t.Errorf("dropped: %v", err)
			}
			if _, _, err := r.Get(t.Context(), bad.ID); !errors.Is(err, ErrNone) {
				t.Errorf("after that: %v", err)
			}
		})
	}
}

// losing are scripts whose replies get lost, although they run.
type losing struct {
	chain.Scripts
	lost []*chain.Script
}

func (l *losing) Run(ctx context.Context, what string, s *chain.Script, keys []string, args ...string) ([]string, error) {
	all, err := l.Scripts.Run(ctx, what, s, keys, args...)
	if slices.Contains(l.lost, s) {
		return nil, errors.New("the reply is lost")
	}
	return all, err
}

// A line whose first entry has ended is not held for ever if the reply to that was lost, and the entry was forgotten or
// taken over meanwhile.
func TestEndWithoutAReply(t *testing.T) {
	for name, spoil := range map[string]bool{"done": false, "unreadable": true} {
		t.Run(name, func(t *testing.T) {
			server := testdep.Redis(t, keepsAll...)
			r := openRedis(t, "redis://"+server.Addr)
			first, second := entryOf("ann", "1"), entryOf("ann", "2")
			add(t, r, first)
			add(t, r, second)
			if spoil {
				server.Do("HSET", "tg:deferred{orders}:entry:"+first.ID, "record", `{"v":1,`)
			}
			r.stop() // its regular work is done below
			r.tending.Wait()
			all := &losing{r.scripts, []*chain.Script{scripts.end}}
			r.scripts = all
			ks, name, _, err := r.turn(t.Context())
			if err != nil || name == "" {
				t.Fatalf("%q %v", name, err)
			}
			if e := r.first(t.Context(), ks, name); e != nil {
				e.State = Done
				r.End(e)
			}
			if len(r.unwritten) != 1 || len(r.held) != 1 {
				t.Fatalf("%d ends are not written, %d lines are held", len(r.unwritten), len(r.held))
			}
			all.lost = nil
			if err := r.forget(t.Context(), ks, []string{first.ID}); err != nil {
				t.Fatal(err)
			}
			r.writeEnds(t.Context(), true)
			if len(r.unwritten) != 0 || len(r.held) != 0 {
				t.Fatalf("%d ends are not written, %d lines are held", len(r.unwritten), len(r.held))
			}
			if e, err := r.Next(t.Context()); err != nil || e.ID != second.ID {
				t.Errorf("%+v %v", e, err)
			}
		})
	}
}

// A line goes on if somebody deletes the record of its first entry: before that is tried, while it is, or before it is put
// back. What became of it is a dead letter, or that it is done, and it takes no place and no bytes any more.
func TestDeletedRecordInRedis(t *testing.T) {
	for name, f := range map[string]func(r *Redis, e *Entry, del func()) State{
		"waiting": func(_ *Redis, _ *Entry, del func()) State { del(); return Dead },
		"done": func(r *Redis, e *Entry, del func()) State {
			del()
			e.State = Done
			r.End(e)
			return Done
		},
		"put back": func(r *Redis, e *Entry, del func()) State {
			del()
			r.Again(e)
			return Dead
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := testdep.Redis(t, keepsAll...)
			r := openRedis(t, "redis://"+server.Addr)
			gone, behind := entryOf("ann", "1"), entryOf("ann", "2")
			add(t, r, gone)
			add(t, r, behind)
			first := gone
			if name != "waiting" {
				var err error
				if first, err = r.Next(t.Context()); err != nil || first.ID != gone.ID {
					t.Fatalf("%+v %v", first, err)
				}
			}
			want := f(r, first, func() { server.Do("DEL", "tg:deferred{orders}:entry:"+gone.ID) })
			second, err := r.Next(t.Context())
			if err != nil || second.ID != behind.ID {
				t.Fatalf("%+v %v", second, err)
			}
			if e, _, err := r.Get(t.Context(), gone.ID); err != nil || e.State != want || want == Dead && !strings.Contains(e.Reason, "deleted") {
				t.Errorf("it is %+v %v, want %s", e, err, want)
			}
			second.State = Done
			r.End(second)
			if err := r.forget(t.Context(), r.keyspaceOf("orders"), []string{gone.ID, behind.ID}); err != nil {
				t.Fatal(err)
			}
			if s, err := r.Stats(t.Context()); err != nil || s.Waiting != 0 || s.Bytes != 0 || s.Lines != 0 || s.Dead != 0 || s.Done != 0 {
				t.Errorf("%+v %v", s, err)
			}
			if busy, err := r.Busy(t.Context(), gone.Line); busy || err != nil {
				t.Errorf("the line is busy: %t %v", busy, err)
			}
		})
	}
}
