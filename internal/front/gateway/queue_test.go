package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

const queueRules = `version: 1
identify: { who: client header X-Who }
rules:
  - { name: line, per: who, limits: { rate: %d/second, algorithm: leaky_bucket }, queue: { places: 1000, max_wait: 1m } }
`

// Many requests are queued, over ten keys. Per key they arrive at the upstream in
// the order in which the gateway has taken them in, and at the rate of the rule.
func TestQueueOrder(t *testing.T) { testQueueOrder(t, false) }

// Half of them leave: those behind move up, and the outflow stays what it was.
func TestQueueOrderWhenHalfLeave(t *testing.T) { testQueueOrder(t, true) }

func testQueueOrder(t *testing.T, half bool) {
	const keys = 10
	each, rate := 40, 20 // two seconds of each key
	long := os.Getenv("TIDEGATE_LONG") != ""
	if long {
		each, rate = 200, 9 // ten and more, also of half of them
	}
	l := &queueTest{arrived: make([][]arrival, keys), turns: make(map[int]int64), asked: make(map[*tidegate.Check]int)}
	set, err := rules.Parse("rules.yaml", []byte(fmt.Sprintf(queueRules, rate)), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l.Matcher, l.Store = set, memory.New()
	g := start(t, Options{
		Gate:      tidegate.NewGate(numbering{l}, queue.New(chain.Adapt(numbered{l}))),
		Upstreams: []*url.URL{serve(t, l.upstream)},
	}, nil)

	l.close(t, set, keys, 2*rate) // so that all are queued before the first may leave

	var wg sync.WaitGroup
	var leave []context.CancelFunc
	left := make(map[int]bool)
	order := rand.Perm(keys * each)
	for i, n := range order {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if half && i%2 == 1 {
			leave, left[n] = append(leave, cancel), true
		}
		wg.Go(func() { l.send(ctx, g.url, n, keys) })
	}
	soon(t, "all are queued", func() bool { return l.taken() == keys*each })
	for _, cancel := range leave {
		cancel()
	}
	wg.Wait()

	for key := range l.arrived {
		l.checkOrder(t, key, long)
		l.checkPace(t, key, rate, long)
	}
	if got := l.count(); got != keys*each-len(left) {
		t.Errorf("%d arrived, want %d", got, keys*each-len(left))
	}
}

// queueTest numbers requests, and notes when the gateway says that their turn
// comes and when they arrive.
type queueTest struct {
	tidegate.Matcher
	tidegate.Store

	mu      sync.Mutex
	asked   map[*tidegate.Check]int // number by vector
	turns   map[int]int64           // by number
	arrived [][]arrival             // by key
}

type arrival struct {
	number int
	at     time.Time
}

// numbering knows a request by the vector that it is held to.
type numbering struct{ *queueTest }

func (m numbering) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	dst = m.Matcher.Match(r, dst)
	text, _ := r.Value("client header X-Number")
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[&dst[0]] = n
	return dst
}

// numbered notes the turn that a request got.
type numbered struct{ *queueTest }

func (s numbered) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	d, err := s.Store.Take(ctx, checks, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[s.asked[&checks[0]]] = d.Receipt.At + int64(d.Wait)*1024/1000
	return d, err
}

func (l *queueTest) upstream(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	key, _ := strconv.Atoi(r.Header.Get("X-Who"))
	number, _ := strconv.Atoi(r.Header.Get("X-Number"))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrived[key] = append(l.arrived[key], arrival{number, now})
}

func (l *queueTest) send(ctx context.Context, url string, number, keys int) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-Who", fmt.Sprint(number%keys))
	r.Header.Set("X-Number", fmt.Sprint(number))
	if res, err := client.Do(r); err == nil {
		res.Body.Close()
	}
}

// close takes so many turns ahead of everybody.
func (l *queueTest) close(t *testing.T, set *rules.Set, keys, turns int) {
	for key := range keys {
		r := &tidegate.Request{Method: http.MethodGet, Path: "/", Cost: int64(turns), Values: header{"client header X-Who", fmt.Sprint(key)}}
		checks := set.Match(r, nil)
		if d, err := l.Store.Take(t.Context(), checks, 1); err != nil || !d.OK {
			t.Fatal(d, err)
		}
	}
}

// header is a request with one value.
type header struct{ name, value string }

func (h header) Value(name string) (string, bool) { return h.value, name == h.name }

func (l *queueTest) taken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.turns)
}

func (l *queueTest) count() (n int) {
	for _, all := range l.arrived {
		n += len(all)
	}
	return n
}

// checkOrder: on a machine that stands still, those who are late leave together,
// and may overtake each other on their way to the upstream. So where it is not said
// to be quiet, some may; without a line, half of them would.
func (l *queueTest) checkOrder(t *testing.T, key int, exact bool) {
	t.Helper()
	overtaken := 0
	for i, a := range l.arrived[key][1:] {
		if before := l.arrived[key][i]; l.turns[before.number] > l.turns[a.number] {
			overtaken++
		}
	}
	if overtaken > len(l.arrived[key])/5 || exact && overtaken > 0 {
		t.Errorf("key %d: %d of %d were overtaken", key, overtaken, len(l.arrived[key]))
	}
}

// checkPace asserts the rate where the machine is said to be quiet; the tests of
// internal/chain/queue assert it in virtual time.
func (l *queueTest) checkPace(t *testing.T, key, rate int, exact bool) {
	t.Helper()
	all := l.arrived[key]
	took := all[len(all)-1].at.Sub(all[0].at)
	want := time.Duration(len(all)-1) * time.Second / time.Duration(rate)
	off := float64(took-want) / float64(want)
	t.Logf("key %d: %d arrived in %s, %.1f %% from the rate", key, len(all), took.Round(time.Millisecond), 100*off)
	if exact && (off < -0.02 || off > 0.02) {
		t.Errorf("key %d: %d arrived in %s, want %s", key, len(all), took, want)
	}
}
