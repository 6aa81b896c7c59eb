package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"tidegate.dev/tidegate/internal/dev/archivetest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/source"
)

func open(t *testing.T, c Config) *Archive {
	t.Helper()
	a, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	a.alive = 300 * time.Millisecond
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// tool is etcdctl, so to speak.
func tool(t *testing.T, e *testdep.EtcdServer) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func put(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	must[*clientv3.PutResponse](t)(c.Put(t.Context(), key, value))
}

func TestArchive(t *testing.T) {
	e := testdep.Etcd(t)
	archivetest.Run(t, archivetest.Server{
		Open: func() source.Archive { return open(t, Config{URL: "etcd://" + e.Addr + "/tidegate/rules"}) },
		Wipe: func() {
			must[*clientv3.DeleteResponse](t)(tool(t, e).Delete(t.Context(), "", clientv3.WithFromKey()))
		},
		Kill: e.Kill, Start: e.Start, Keeps: true,
	})
}

// Whatever writes to etcd changes the rules: files that are put and deleted are seen, and
// nothing of other prefixes is.
func TestFilesByHand(t *testing.T) {
	e := testdep.Etcd(t)
	c := tool(t, e)
	a := open(t, Config{URL: "etcd://" + e.Addr + "/r"})
	a.alive = time.Minute
	put(t, c, "/r/", "") // some tools make a key for the folder
	put(t, c, "/r/rules.yaml", "one")
	put(t, c, "/r2/rules.yaml", "of another")
	put(t, c, "/r.yaml", "of another")
	first, err := a.Next(t.Context(), "")
	if err != nil || len(first.Files) != 1 || string(first.Files["rules.yaml"]) != "one" || first.Author != "" {
		t.Fatalf("%+v, %v", first, err)
	}
	have := first
	change := func(what string, do func(), want ...string) {
		t.Helper()
		got := make(chan *source.Bundle, 1)
		go func() {
			b, err := a.Next(t.Context(), have.Revision)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		do()
		b := <-got
		if b == nil || b.Revision == have.Revision || len(b.Files) != len(want) {
			t.Fatalf("%s: %+v, want %q", what, b, want)
		}
		for _, name := range want {
			if _, there := b.Files[name]; !there {
				t.Errorf("%s: there is no %s", what, name)
			}
		}
		have = b
	}
	change("a new file", func() { put(t, c, "/r/lists/a", "x") }, "rules.yaml", "lists/a")
	change("a changed file", func() { put(t, c, "/r/rules.yaml", "two") }, "rules.yaml", "lists/a")
	if number, _, _ := strings.Cut(have.Revision, "-"); number == "" || !strings.Contains(have.Revision, "-edited-") {
		t.Errorf("an edited set is called %s, which looks like one that was published", have.Revision)
	}
	change("the newest file, deleted", func() { must[*clientv3.DeleteResponse](t)(c.Delete(t.Context(), "/r/rules.yaml")) }, "lists/a")
	change("and put again", func() { put(t, c, "/r/rules.yaml", "two") }, "rules.yaml", "lists/a")
	// The newest key is now another than the deleted one: only the set of keys tells.
	change("a file less", func() { must[*clientv3.DeleteResponse](t)(c.Delete(t.Context(), "/r/lists/a")) }, "rules.yaml")

	// What was written by hand is kept as a revision when something is published, also if its
	// history is compacted.
	byHand := have
	revision, err := a.Publish(t.Context(), &source.Bundle{Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte("three"), "x": nil}}, byHand.Revision)
	if err != nil {
		t.Fatal(err)
	}
	now := must[*clientv3.GetResponse](t)(c.Get(t.Context(), "/r/rules.yaml"))
	must[*clientv3.CompactResponse](t)(c.Compact(t.Context(), now.Header.Revision))
	if b, err := a.Get(t.Context(), byHand.Revision); err != nil || string(b.Files["rules.yaml"]) != "two" || len(b.Files) != 1 {
		t.Errorf("%+v, %v", b, err)
	}
	all := must[[]source.Edition](t)(a.History(t.Context()))
	if len(all) != 2 || all[0].Revision != revision || all[1].Revision != byHand.Revision {
		t.Errorf("%+v", all)
	}
	// Writing what is there already changes nothing, and one can publish on top of it.
	put(t, c, "/r/rules.yaml", "three")
	if b, err := a.Next(t.Context(), ""); err != nil || b.Revision != revision {
		t.Errorf("%+v, %v; want %s", b, err, revision)
	}
	if all = must[[]source.Edition](t)(a.History(t.Context())); all[0].Revision != revision {
		t.Errorf("%+v", all)
	}
	again := &source.Bundle{Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte("four"), "x": nil}}
	if revision, err = a.Publish(t.Context(), again, revision); err != nil {
		t.Fatal(err)
	}
	// The main file stays the main file when others are edited.
	put(t, c, "/r/x", "edited")
	b, err := a.Next(t.Context(), revision)
	if err != nil || b.Main != "rules.yaml" || b.Revision == revision || b.Author != "" {
		t.Errorf("%+v, %v", b, err)
	}
	if all = must[[]source.Edition](t)(a.History(t.Context())); len(all) != 4 || all[0].Revision != b.Revision {
		t.Errorf("%+v", all)
	}
	// A publisher who did not see an edit or a deletion does not undo it.
	for what, do := range map[string]func(){
		"edit":     func() { put(t, c, "/r/x", "edited again") },
		"new file": func() { put(t, c, "/r/y", "") },
		"deletion": func() { must[*clientv3.DeleteResponse](t)(c.Delete(t.Context(), "/r/x")) },
	} {
		b := must[*source.Bundle](t)(a.Next(t.Context(), ""))
		do()
		if _, err := a.Publish(t.Context(), first, b.Revision); !errors.Is(err, source.ErrConflict) {
			t.Errorf("after the %s: %v", what, err)
		}
	}
	put(t, c, "/r/../x", "")
	if b, err := a.Next(t.Context(), ""); err == nil || !strings.Contains(err.Error(), `"/r/../x"`) {
		t.Errorf("a key that leaves the set: %+v, %v", b, err)
	}
}

// Between the snapshot and the transaction others may write.
func TestCommitConflicts(t *testing.T) {
	e := testdep.Etcd(t)
	c := tool(t, e)
	a := open(t, Config{URL: "etcd://" + e.Addr + "/r"})
	for what, do := range map[string]func(){
		"edit":     func() { put(t, c, "/r/a", "edited") },
		"new file": func() { put(t, c, "/r/c", "") },
		"deletion": func() { must[*clientv3.DeleteResponse](t)(c.Delete(t.Context(), "/r/b")) },
	} {
		put(t, c, "/r/a", "")
		put(t, c, "/r/b", "")
		s := must[*snapshot](t)(a.snapshot(t.Context()))
		do()
		if r, err := a.commit(t.Context(), s, []clientv3.Op{clientv3.OpPut("/r/a", "mine")}, nil, ""); !errors.Is(err, source.ErrConflict) {
			t.Errorf("after the %s: %q, %v", what, r, err)
		}
	}
}

// More files than one answer has, and a snapshot that is compacted away while it is read.
func TestSnapshotsOfManyKeys(t *testing.T) {
	e := testdep.Etcd(t)
	c := tool(t, e)
	a := open(t, Config{URL: "etcd://" + e.Addr + "/r"})
	for i := range 3 * pageSize {
		put(t, c, fmt.Sprintf("/r/%d.yaml", i), fmt.Sprint(i))
	}
	b, err := a.Next(t.Context(), "")
	if err != nil || len(b.Files) != 3*pageSize {
		t.Fatalf("%d files, %v", len(b.Files), err)
	}
	if again, err := a.Next(t.Context(), b.Revision); again != nil || err != nil {
		t.Errorf("nothing is new: %+v, %v", again, err)
	}
	stop, stopped := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // writes and compacts without end
		defer close(done)
		for i := 0; stop.Err() == nil; i++ {
			if p, err := c.Put(stop, "/r/0.yaml", fmt.Sprint(i)); err == nil {
				_, _ = c.Compact(stop, p.Header.Revision)
			}
		}
	}()
	good := 0
	for end := time.Now().Add(time.Minute); good < 5 && time.Now().Before(end); {
		b, err := a.Next(t.Context(), "")
		switch {
		case err == nil && len(b.Files) == 3*pageSize:
			good++
		case err == nil:
			t.Errorf("%d files", len(b.Files))
		case !strings.Contains(err.Error(), "compacted"):
			t.Error(err)
		}
	}
	stopped()
	<-done
	if good < 5 {
		t.Errorf("%d snapshots in a minute", good)
	}
	for i := range 1001 - 3*pageSize {
		put(t, c, fmt.Sprintf("/r/more%d.yaml", i), "")
	}
	if b, err := a.Next(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Errorf("one file too many: %+v, %v", b, err)
	}
}

// What does not fit one transaction is an error that says what to do; with other settings of
// the server it fits.
func TestLargeSets(t *testing.T) {
	testdep.SkipUnderRace(t)
	large := func(n, size int) *source.Bundle {
		b := &source.Bundle{Files: make(map[string][]byte)}
		for i := range n {
			b.Files[fmt.Sprintf("%d.yaml", i)] = make([]byte, size)
			_, _ = rand.Read(b.Files[fmt.Sprintf("%d.yaml", i)])
		}
		return b
	}
	small := open(t, Config{URL: "etcd://" + testdep.Etcd(t).Addr + "/r"})
	for want, b := range map[string]*source.Bundle{"--max-txn-ops": large(200, 10), "--max-request-bytes": large(10, 200<<10)} {
		if r, err := small.Publish(t.Context(), b, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v; want %s in it", r, err, want)
		}
	}
	roomy := open(t, Config{URL: "etcd://" + testdep.Etcd(t, "--max-txn-ops", "2000", "--max-request-bytes", "33554432").Addr + "/r"})
	b := large(1000, 10<<10)
	revision, err := roomy.Publish(t.Context(), b, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := roomy.Next(t.Context(), ""); err != nil || got.Revision != revision || len(got.Files) != 1000 {
		t.Errorf("%v", err)
	}
}
