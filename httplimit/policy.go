package httplimit

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
)

// policy is what responses say about a limit whatever the decision.
type policy struct {
	limit    *tidegate.Limit
	name     string // printable ASCII
	item     string // "burst";r=
	draft11  string // "burst";q=100;w=60
	draft6   string // 100;w=60, or "" when it has no window
	capacity string
	slots    bool
	salt     uint64 // random: keeps the cached values of several limits apart
	usual    usualProblem
	terms    // what its rule says about it
}

// newPolicy returns the policy of l. It describes the limit that clients are told.
func newPolicy(l *tidegate.Limit, name string) *policy {
	of, terms := l, termsOf(l)
	if terms.nominal != nil {
		l = terms.nominal
	}
	name = printable(name)
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	p := &policy{
		limit:    of,
		name:     name,
		item:     quoted + ";r=",
		draft11:  quoted + ";q=" + strconv.FormatInt(quota(l), 10),
		capacity: strconv.FormatInt(l.Capacity(), 10),
		slots:    l.Algorithm == tidegate.Concurrency,
		salt:     rand.Uint64(),
		terms:    terms,
	}
	if p.slots {
		p.draft11 += `;qu="concurrent-requests"`
	} else if w := window(l); w > 0 {
		p.draft11 += fmt.Sprintf(";w=%d", w)
		p.draft6 = fmt.Sprintf("%d;w=%d", quota(l), w)
	}
	p.usual = p.usualProblem()
	return p
}

// quota returns the q of a policy: the most that can ever remain, so that r is never above it.
func quota(l *tidegate.Limit) int64 { return max(l.Events, l.Capacity()) }

// window returns the w of a policy: the seconds in which its quota comes back, rounded up,
// because a hint should rather be too strict than too generous. It is 0 for months and
// years, which have no fixed length.
func window(l *tidegate.Limit) int64 {
	if l.Algorithm != tidegate.Quota {
		hi, lo := bits.Mul64(uint64(l.Period), uint64(quota(l)))
		if hi >= uint64(l.Events) {
			return ceilSeconds(math.MaxInt64)
		}
		w, rest := bits.Div64(hi, lo, uint64(l.Events))
		if rest > 0 {
			w++
		}
		return ceilSeconds(time.Duration(min(w, math.MaxInt64)))
	}
	const day = int64(24 * time.Hour / time.Second)
	switch l.Calendar {
	case tidegate.Day:
		return day
	case tidegate.Week:
		return 7 * day
	}
	return 0
}

// printable makes a name fit for a header: bytes beyond printable ASCII, which
// a string of RFC 9651 cannot hold, are percent-encoded.
func printable(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c < 0x20 || c > 0x7e {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// maxPolicies bounds the policies remembered for a Gate, whose rules may make
// limits as they go.
const maxPolicies = 1024

// policies finds the policy of a limit. Those of a Limiter are all known from
// the start and always listed together, as clients may expect the field
// RateLimit-Policy to stay the same; a Gate learns them one by one.
type policies struct {
	fixed      []*policy
	all11      string
	all6       string
	cache      *valueCache
	recent     *[1 << recentBits]atomic.Pointer[policy]
	learned    *sync.Map // of *tidegate.Limit to *policy
	learnedLen *atomic.Int64
}

// recentBits is the size of the cache of policies used last, as a power of two.
const recentBits = 6

// newPolicies returns policies that know limits from the start. Limits that would have
// the same name are numbered, so that a client can tell which one an entry is about.
func newPolicies(limits []*tidegate.Limit) policies {
	ps := policies{cache: new(valueCache), recent: new([1 << recentBits]atomic.Pointer[policy]), learned: new(sync.Map), learnedLen: new(atomic.Int64)}
	var list11, list6 []string
	used := map[string]bool{}
	for _, l := range limits {
		name := policyName(l)
		for n := 2; used[name]; n++ {
			name = policyName(l) + "-" + strconv.Itoa(n)
		}
		used[name] = true
		p := newPolicy(l, name)
		ps.fixed = append(ps.fixed, p)
		list11 = append(list11, p.draft11)
		if p.draft6 != "" {
			list6 = append(list6, p.draft6)
		}
	}
	ps.all11, ps.all6 = strings.Join(list11, ", "), strings.Join(list6, ", ")
	return ps
}

func policyName(l *tidegate.Limit) string {
	if l.Name == "" {
		return "default"
	}
	return l.Name
}

// of returns the policy of l, nil for a nil l.
func (ps *policies) of(l *tidegate.Limit) *policy {
	if l == nil {
		return nil
	}
	for _, p := range ps.fixed {
		if p.limit == l {
			return p
		}
	}
	recent := &ps.recent[uint64(uintptr(unsafe.Pointer(l)))*0x9e3779b97f4a7c15>>(64-recentBits)]
	if p := recent.Load(); p != nil && p.limit == l {
		return p
	}
	p := ps.learn(l)
	recent.Store(p)
	return p
}

// learn returns what of does, for limits that are not in the cache, and adds them.
func (ps *policies) learn(l *tidegate.Limit) *policy {
	if p, ok := ps.learned.Load(l); ok {
		return p.(*policy)
	}
	if ps.learnedLen.Add(1) > maxPolicies {
		ps.learned.Clear()
		ps.learnedLen.Store(1)
	}
	p := newPolicy(l, policyName(l))
	ps.learned.Store(l, p)
	return p
}

func (ps *policies) list11(p *policy) string {
	if ps.all11 != "" {
		return ps.all11
	}
	return p.draft11
}

func (ps *policies) list6(p *policy) string {
	if ps.all11 != "" {
		return ps.all6
	}
	return p.draft6
}
