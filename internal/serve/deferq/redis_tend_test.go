package deferq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// hanging are servers of which some never answer. Keys of the rule on-NAME are on the server NAME, all
// others on the first.
type hanging struct {
	mu      sync.Mutex
	hung    map[string]bool // by server
	renewed map[string][]time.Time
}

func (h *hanging) Home(key string) string {
	_, rule, _ := strings.Cut(key, "{on-")
	name, _, found := strings.Cut(rule, "}")
	if !found {
		return "healthy"
	}
	return name
}

func (h *hanging) Prefix() string { return "tg" }

func (h *hanging) Run(ctx context.Context, _ string, s *chain.Script, keys []string, _ ...string) ([]string, error) {
	server := h.Home(keys[0])
	h.mu.Lock()
	hung := h.hung[server]
	if s == scripts.renew && !hung {
		h.renewed[server] = append(h.renewed[server], time.Now())
	}
	h.mu.Unlock()
	if hung {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, nil
}

func (h *hanging) Durability(ctx context.Context) ([]chain.Durability, error) {
	h.mu.Lock()
	hung := len(h.hung) > 0
	h.mu.Unlock()
	if hung {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []chain.Durability{{AOF: true, Fsync: "always", Policy: "noeviction"}}, nil
}

// However many servers hang, for however long, the claims of lines on another are renewed in time, and are not taken over;
// the settings of servers are not asked for without a pause.
func TestClaimsAreRenewedWhileOthersHang(t *testing.T) {
	for _, takeover := range []time.Duration{time.Second, 3 * time.Second, time.Minute} {
		for _, n := range []int{0, 1, 5} {
			t.Run(fmt.Sprintf("%s, %d hang", takeover, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testClaimsAreRenewed(t, takeover, n) })
			})
		}
	}
}

// onServers returns a queue on h that does nothing yet.
func onServers(h *hanging, takeover time.Duration) *Redis {
	return &Redis{
		o:       RedisOptions{Takeover: takeover, Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		scripts: h, consumer: "test", unfit: errUnknown,
		rules: make(map[string]*keyspace), held: make(map[heldLine]string), away: make(map[place]absence), wake: make(chan struct{}, 1),
	}
}

func testClaimsAreRenewed(t *testing.T, takeover time.Duration, n int) {
	h := &hanging{renewed: make(map[string][]time.Time)}
	r := onServers(h, takeover)
	all := []string{"healthy"}
	for i := range n {
		all = append([]string{fmt.Sprint("hung", i)}, all...) // these first
	}
	for _, server := range all {
		rule := "on-" + server
		ks := r.keyspaceOf(rule)
		r.rules[rule], r.order = ks, append(r.order, ks)
		l := heldLine{rule, "line"}
		r.held[l] = "1-1"
		if server != "healthy" {
			r.unwritten = append(r.unwritten, unwritten{l, func(ctx context.Context) error {
				_, err := r.run(ctx, rule, "record the end of a deferred request", scripts.end, []string{ks.key("meta")})
				return err
			}})
		}
	}
	r.life, r.stop = context.WithCancel(t.Context())
	began := time.Now()
	r.begin()
	time.Sleep(10 * time.Second)
	h.mu.Lock()
	if n > 0 {
		h.hung = make(map[string]bool)
		for _, server := range all[:n] {
			h.hung[server] = true
		}
	}
	h.mu.Unlock()
	time.Sleep(20 * time.Minute)
	r.stop()
	r.tending.Wait()
	last := began
	for _, at := range append(h.renewed["healthy"], time.Now()) {
		if gap := at.Sub(last); gap > takeover/2 {
			t.Fatalf("after %s its claim was not renewed for %s", last.Sub(began), gap)
		}
		last = at
	}
	if err := r.isFit(); err != nil {
		t.Error(err)
	}
}

// While the settings of Redis cannot be asked for, they are asked for again after a pause, which is longer the longer the
// failure took.
func TestFailedChecksPause(t *testing.T) {
	for _, slow := range []time.Duration{0, time.Second, callTimeout} {
		synctest.Test(t, func(t *testing.T) {
			f := &failing{hanging: hanging{renewed: make(map[string][]time.Time)}, slow: slow}
			r := &Redis{
				o: RedisOptions{Takeover: time.Second, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, scripts: f, unfit: errUnknown,
				rules: make(map[string]*keyspace), held: make(map[heldLine]string), away: make(map[place]absence), wake: make(chan struct{}, 1),
			}
			r.life, r.stop = context.WithCancel(t.Context())
			r.begin()
			time.Sleep(10 * time.Minute)
			r.stop()
			r.tending.Wait()
			most := int(10*time.Minute/(slow+max(awayFor, 2*slow))) + 2
			if n := f.asked; n > most || n < most/2 {
				t.Errorf("failing after %s, they were asked for %d times in 10 minutes; want about %d", slow, n, most)
			}
		})
	}
}

// failing is a Redis whose settings cannot be asked for.
type failing struct {
	hanging
	slow  time.Duration
	asked int
}

func (f *failing) Durability(ctx context.Context) ([]chain.Durability, error) {
	f.asked++
	select {
	case <-ctx.Done():
	case <-time.After(f.slow):
	}
	return nil, errors.New("broken")
}

// After a server has stood still its claims are renewed at once, however long the calls took that failed meanwhile.
func TestClaimsAreRenewedAfterAStandstill(t *testing.T) {
	const takeover = 10 * time.Second
	for tenths := 1; tenths <= 65; tenths += 2 {
		still := time.Duration(tenths) * time.Second / 10
		synctest.Test(t, func(t *testing.T) {
			h := &hanging{renewed: make(map[string][]time.Time)}
			r := onServers(h, takeover)
			ks := r.keyspaceOf("on-healthy")
			r.rules["on-healthy"], r.order = ks, []*keyspace{ks}
			r.held[heldLine{"on-healthy", "line"}] = "1-1"
			r.life, r.stop = context.WithCancel(t.Context())
			began := time.Now()
			r.begin()
			time.Sleep(10 * time.Second)
			h.hang(true)
			var asked sync.WaitGroup
			asked.Go(func() { // it fails after the server answers others again
				_, _ = r.run(t.Context(), "on-healthy", "look for deferred requests", scripts.turn, []string{ks.key("turns")})
			})
			time.Sleep(still)
			h.hang(false)
			time.Sleep(time.Minute)
			asked.Wait()
			r.stop()
			r.tending.Wait()
			last := began
			for _, at := range append(h.renewed["healthy"], time.Now()) {
				if gap := at.Sub(last); gap > takeover {
					t.Fatalf("it stood still for %s, and its claim was not renewed for %s", still, gap)
				}
				last = at
			}
		})
	}
}

// hang has the first server hang, or answer again.
func (h *hanging) hang(hung bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hung = nil; hung {
		h.hung = map[string]bool{"healthy": true}
	}
}
