package deferq

import (
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
)

// oddKeys are keys that clients can choose, of which JSON has only the last two.
var oddKeys = []string{"J\xf6rg", "\xff", "\xfe", "\xf0\x9f", strings.Repeat("\x80", 64), "\ufffd", "a\x00<"}

// What is not UTF-8 of a request is kept as it is, and its line is that of its key: nobody else's, and also after a restart.
func TestNotText(t *testing.T) { everyStore(t, testNotText) }

func testNotText(t *testing.T, in kept) {
	open := in(t, 1<<20)
	s := open()
	want := map[string]*Entry{}
	for i := range 2 {
		for _, key := range oddKeys {
			e := entryOf(key, fmt.Sprint(i))
			e.Checks = []Check{{Key: key, Cost: 1}, {Key: "plain", Cost: 2}}
			e.Request.URL = "/orders?who=" + key
			e.Request.Header = http.Header{"X-User": {"plain", key}, "X": {"y"}}
			add(t, s, e)
			want[e.ID] = e
		}
	}
	closed(t, s)
	s = open()
	defer closed(t, s)
	for _, key := range oddKeys {
		if busy, err := s.Busy(t.Context(), Line{"orders", "user", key}); !busy || err != nil {
			t.Errorf("%q is not busy, %v", key, err)
		}
	}
	next := map[string]int{}
	for range want {
		e, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		had := want[e.ID]
		if e.Line != had.Line || e.Request.URL != had.Request.URL || !reflect.DeepEqual(e.Request.Header, had.Request.Header) || !reflect.DeepEqual(e.Checks, had.Checks) {
			t.Errorf("%+v came, and %+v was kept", e, had)
		}
		if string(e.Request.Body) != fmt.Sprint(next[had.Line.Key]) {
			t.Errorf("%q: %s came, want %d", had.Line.Key, e.Request.Body, next[had.Line.Key])
		}
		next[had.Line.Key]++
		e.State, e.Ended = Done, time.Now()
		s.End(e)
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Waiting != 0 || st.Lines != 0 || st.Done != int64(len(want)) {
		t.Errorf("%+v %v", st, err)
	}
}

// The limit holds for every key, live and sent later together: what is sent later is counted by the same key.
func TestLimitOfOddKeys(t *testing.T) {
	for _, key := range oddKeys {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, testRules)
			defer b.close()
			b.accept(key, 0, 8)
			time.Sleep(10 * time.Second)
			neverThree(t, b.arrivals(), 8)
		})
	}
}

// neverThree wants so many arrivals, in their order, and no three of them within a second.
func neverThree(t testing.TB, got []arrival, want int) {
	t.Helper()
	if len(got) != want {
		t.Errorf("%d came, want %d", len(got), want)
	}
	for i, a := range got {
		if a.body != fmt.Sprint(i) {
			t.Errorf("%s came, want %d", a.body, i)
		}
		if i < 2 {
			continue
		}
		if gap := a.at.Sub(got[i-2].at); gap < time.Second-time.Microsecond {
			t.Errorf("%q: three within %s", a.key, gap)
		}
	}
}

// Who is not known any more when a request is sent later, as the header is not kept, is still counted by the same counters.
func TestStrippedIdentityIsCounted(t *testing.T) {
	for _, algorithm := range []string{"sliding_log", "sliding_window, ceiling: true", "sub_windows, parts: 60, ceiling: true"} {
		for _, key := range []string{"ann", "\xff"} {
			synctest.Test(t, func(t *testing.T) {
				limit := "limits: { rate: 2/second, algorithm: " + algorithm + " }"
				b := newBench(t, strings.Replace(testRules, "limits: 2/second", limit, 1), func(o *Options) { o.Strip = []string{"X-User"} })
				defer b.close()
				b.accept(key, 0, 8)
				time.Sleep(20 * time.Second)
				neverThree(t, b.arrivals(), 8)
			})
		}
	}
}

// Bytes are counted as they are written: characters that JSON writes as six, keys, and what is not UTF-8.
func TestBytesAsWritten(t *testing.T) {
	for _, text := range []string{"<", "\xff", "x", "\""} {
		const max = 1 << 20
		f := openFile(t, filepath.Join(t.TempDir(), "deferred"), max)
		for i := 0; ; i++ {
			e := entryOf(strings.Repeat(text, 60)+fmt.Sprint(i), "x")
			e.Request.Header.Set("X", strings.Repeat(text, 4000))
			if _, err := f.Add(t.Context(), e, wide); err != nil {
				break
			}
		}
		written := 0
		err := f.db.View(func(tx *bolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
				return b.ForEach(func(k, v []byte) error { written += len(k) + len(v); return nil })
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if st, _ := f.Stats(t.Context()); int64(written) > st.Bytes || st.Bytes > max || written < max/2 {
			t.Errorf("%q: %d bytes are written, %d are counted, and %d are allowed", text, written, st.Bytes, max)
		}
		closed(t, f)
	}
}
