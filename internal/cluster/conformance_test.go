package cluster

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/testdep"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/redis"
	"tidegate.dev/tidegate/store/storetest"
)

// patient has a deadline that a busy machine does not miss.
const patient = time.Minute

// open returns a Store around inner that ends with the test.
func open(t testing.TB, inner tidegate.Store, o Options) *Store {
	s := New(inner, o)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Without the memory of refusals, a Store answers what the inner store does, to the letter.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
		return open(t, memory.Open(memory.Config{Now: now}), Options{Deadline: patient, DenyEntries: -1})
	})
}

// With it, a refusal is told by the limit that refused before, which need not be the one
// of several that takes longest. Whatever else is asked of a store holds.
func TestConformanceDenials(t *testing.T) {
	storetest.RunReal(t, func(t *testing.T) tidegate.Store { return open(t, memory.New(), Options{Deadline: patient}) })
}

func TestConformanceRedis(t *testing.T) {
	server := testdep.Redis(t)
	stores := 0
	storetest.RunReal(t, func(t *testing.T) tidegate.Store {
		stores++
		inner, err := redis.Open(redis.Config{Addrs: []string{server.Socket}, Prefix: fmt.Sprint("t", stores)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = inner.Close() })
		return open(t, inner, Options{Deadline: patient})
	})
}
