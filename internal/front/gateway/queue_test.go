package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/dev/testdep"
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

// testQueueOrder tries again, more slowly, if the machine stood still for much of the time
// between two turns: then requests overtake each other on their way to the upstream.
func testQueueOrder(t *testing.T, half bool) {
	if os.Getenv("TIDEGATE_LONG") != "" { // on a quiet machine: ten seconds and more, also of half of them
		if wrong := (queueOrder{each: 200, rate: 9, ahead: 2, half: half, exact: true}).run(t); wrong != nil {
			t.Error(strings.Join(wrong, "\n"))
		}
		return
	}
	var wrong []string
	for _, o := range []queueOrder{
		{each: 40, rate: 20, ahead: 2, half: half},
		{each: 20, rate: 8, ahead: 4, half: half},
		{each: 10, rate: 2, ahead: 8, half: half},
		{each: 10, rate: 1, ahead: 16, half: half},
	} {
		stood := testdep.Standstill(func() { wrong = o.run(t) })
		if wrong == nil {
			return
		}
		if turn := time.Second / time.Duration(o.rate); stood < turn/4 {
			break
		}
		t.Logf("with %d turns a second, and a machine that stood still for %s at a time:\n%s", o.rate, stood, strings.Join(wrong, "\n"))
	}
	t.Error(strings.Join(wrong, "\n"))
}

// queueOrder is one try.
type queueOrder struct {
	each  int  // requests of each key
	rate  int  // turns a second
	ahead int  // seconds until the first turn: all have to be queued by then, and have left
	half  bool // of them leave
	exact bool // the machine is said to be quiet
}

func (o queueOrder) run(t *testing.T) (wrong []string) {
	const keys = 10
	l := &queueTest{arrived: make([][]arrival, keys), turns: make(map[int]int64), asked: make(map[*tidegate.Check]int)}
	set, err := rules.Parse("rules.yaml", []byte(fmt.Sprintf(queueRules, o.rate)), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l.Matcher, l.Store = set, memory.New()
	g := start(t, Options{
		Gate:      tidegate.NewGate(numbering{l}, queue.New(chain.Adapt(numbered{l}))),
		Upstreams: []*url.URL{serve(t, l.upstream)},
	}, nil)
	l.close(t, set, keys, o.ahead*o.rate)

	var wg sync.WaitGroup
	var leave []context.CancelFunc
	for i, n := range rand.Perm(keys * o.each) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if o.half && i%2 == 1 {
			leave = append(leave, cancel)
		}
		wg.Go(func() { l.send(ctx, g.url, n, keys) })
	}
	soon(t, "all are queued", func() bool { return l.taken() == keys*o.each })
	for _, cancel := range leave {
		cancel()
	}
	wg.Wait()

	for key := range l.arrived {
		wrong = append(wrong, l.checkOrder(key, o.exact)...)
		wrong = append(wrong, l.checkPace(t, key, o.rate, o.exact)...)
	}
	if got, want := l.count(), keys*o.each-len(leave); got != want {
		wrong = append(wrong, fmt.Sprintf("%d arrived, want %d", got, want))
	}
	return wrong
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

// checkOrder wants requests to arrive in the order of their turns. Where the machine is
// not said to be quiet, one in five may be overtaken on its way; without a queue, half of
// them would be.
func (l *queueTest) checkOrder(key int, exact bool) (wrong []string) {
	overtaken := 0
	for i, a := range l.arrived[key] {
		if i > 0 && l.turns[l.arrived[key][i-1].number] > l.turns[a.number] {
			overtaken++
		}
	}
	if overtaken > len(l.arrived[key])/5 || exact && overtaken > 0 {
		wrong = append(wrong, fmt.Sprintf("key %d: %d of %d were overtaken", key, overtaken, len(l.arrived[key])))
	}
	return wrong
}

// checkPace wants the rate where the machine is said to be quiet; the tests of
// internal/chain/queue want it in virtual time.
func (l *queueTest) checkPace(t *testing.T, key, rate int, exact bool) (wrong []string) {
	all := l.arrived[key]
	if len(all) < 2 {
		return []string{fmt.Sprintf("key %d: %d arrived", key, len(all))}
	}
	took := all[len(all)-1].at.Sub(all[0].at)
	want := time.Duration(len(all)-1) * time.Second / time.Duration(rate)
	off := float64(took-want) / float64(want)
	t.Logf("key %d: %d arrived in %s, %.1f %% from the rate", key, len(all), took.Round(time.Millisecond), 100*off)
	if exact && (off < -0.02 || off > 0.02) {
		wrong = append(wrong, fmt.Sprintf("key %d: %d arrived in %s, want %s", key, len(all), took, want))
	}
	return wrong
}
