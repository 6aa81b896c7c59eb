package deferq

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// record1 is a record of version 1 as that version wrote it, which every later one has to read. Its line is
// ann's of the rule orders, and its limit 2 a second.
func record1(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/record1.json")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// Of record1: its ID, the name of its line in Redis, and its body.
const (
	id1   = "2ooi2s6kpii5saa31peedp22ciq6s7rr"
	name1 = "719fab5b8f98a877828013a616fa4fef"
	body1 = "two pounds of tea"
)

// isRecord1 wants an entry to be that of record1.
func isRecord1(t testing.TB, e *Entry) {
	t.Helper()
	if e.ID != id1 || e.Line != (Line{"orders", "user", "ann"}) || e.Request.Method != "POST" || e.Request.URL != "/orders?x=1" || e.Request.Host != "shop.example" ||
		e.Request.Header.Get("X-User") != "ann" || string(e.Request.Body) != body1 || e.Keep != time.Hour || len(e.Checks) != 1 || e.Checks[0].Cost != 1 {
		t.Errorf("%+v", e)
	}
	if spec := e.Checks[0].Spec; spec.Name != "orders" || spec.Events != 2 || spec.Period != time.Second {
		t.Errorf("its limit is %+v", spec)
	}
}

// file1 is a file of version 1 with one request.
func file1(t testing.TB, record string) string {
	path := filepath.Join(t.TempDir(), "deferred")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for name, value := range map[string][]byte{"meta": nil, "waiting": []byte(record), "bodies": []byte(body1), "ended": nil} {
			b, err := tx.CreateBucket([]byte(name))
			if err == nil && value != nil {
				err = b.Put([]byte{0, 0, 0, 0, 0, 0, 0, 7}, value)
			}
			if err == nil && name == "meta" {
				err = b.Put([]byte("version"), []byte{1})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// What version 1 has kept in a file is read.
func TestVersion1InAFile(t *testing.T) {
	f := openFile(t, file1(t, record1(t)), 1<<20)
	defer closed(t, f)
	e, err := f.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	isRecord1(t, e)
}

// A file with a record of a later version is not called damaged, and stays as it is.
func TestLaterVersionInAFile(t *testing.T) {
	path := file1(t, strings.Replace(record1(t), `"v":1`, `"v":2`, 1))
	_, err := OpenFile(path, FileOptions{Max: 1 << 20})
	if err == nil || strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), "version is 2") {
		t.Errorf("%v", err)
	}
}

// keep1 keeps a record in Redis as version 1 did.
func keep1(server *testdep.RedisServer, record string) {
	const base = "tg:deferred{orders}:"
	now := time.Now().UnixMicro()
	server.Do("SADD", "tg:deferred:rules", "orders")
	server.Do("XADD", base+"line:"+name1, "1-1", "id", id1, "n", "1")
	server.Do("XGROUP", "CREATE", base+"line:"+name1, "gateways", "0")
	server.Do("ZADD", base+"turns", strconv.FormatInt(now, 10), name1)
	server.Do("HSET", base+"entry:"+id1, "record", record, "sid", "1-1", "n", "1", "state", "waiting", "attempts", "2",
		"reason", "broken", "next", "0", "expires", strconv.FormatInt(now+time.Hour.Microseconds(), 10), "size", "700")
	server.Do("SET", base+"body:"+id1, body1)
	server.Do("ZADD", base+"waiting", strconv.FormatInt(now, 10), id1)
	server.Do("HSET", base+"lines", name1, "700")
	server.Do("HSET", base+"meta", "waiting", "1", "bytes", "700")
}

// What version 1 has kept in Redis is read, and ended.
func TestVersion1InRedis(t *testing.T) {
	server := testdep.Redis(t, keepsAll...)
	keep1(server, record1(t))
	r := openRedis(t, "redis://"+server.Addr)
	e, err := r.Next(t.Context())
	if err != nil || e.Attempts != 2 || e.Reason != "broken" {
		t.Fatalf("%+v, %v", e, err)
	}
	isRecord1(t, e)
	e.State, e.Ended = Done, time.Now()
	r.End(e)
	if s, err := r.Stats(t.Context()); err != nil || s.Waiting != 0 || s.Done != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A record of a later version is left to gateways that know it: its line waits, others go on, and operators
// see it.
func TestLaterVersionInRedis(t *testing.T) {
	server := testdep.Redis(t, keepsAll...)
	keep1(server, strings.Replace(record1(t), `"v":1`, `"v":2`, 1))
	r := openRedis(t, "redis://"+server.Addr)
	behind, other := entryOf("ann", "behind"), entryOf("bob", "x")
	add(t, r, behind)
	add(t, r, other)
	e, err := r.Next(t.Context())
	if err != nil || e.ID != other.ID {
		t.Fatalf("%+v, %v", e, err)
	}
	e.State, e.Ended = Done, time.Now()
	r.End(e)
	shown := map[string]State{}
	if err := r.List(t.Context(), func(e *Entry) bool { shown[e.ID] = e.State; return true }); err != nil {
		t.Fatal(err)
	}
	if shown[id1] != Waiting && shown[id1] != Trying || shown[behind.ID] != Waiting || shown[other.ID] != Done {
		t.Errorf("%v", shown)
	}
	soon, cancel := context.WithTimeout(t.Context(), 2*leaveFor)
	defer cancel()
	if e, err := r.Next(soon); err == nil {
		t.Fatalf("%+v has overtaken it", e)
	}
	server.Do("HSET", "tg:deferred{orders}:entry:"+id1, "record", record1(t)) // a gateway that knows it
	for _, want := range []string{id1, behind.ID} {
		e, err := r.Next(t.Context())
		if err != nil || e.ID != want {
			t.Fatalf("%+v, %v; want %s", e, err, want)
		}
		if e.ID == id1 && (e.Attempts != 2 || e.Reason != "broken") {
			t.Errorf("%+v", e)
		}
		e.State, e.Ended = Done, time.Now()
		r.End(e)
	}
}
