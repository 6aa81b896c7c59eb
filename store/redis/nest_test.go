package redis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

func TestShapes(t *testing.T) {
	s := openTest(t, Config{Addrs: []string{"127.0.0.1:1"}})
	on := func(scope string, a tidegate.Algorithm, period time.Duration) tidegate.Check {
		return tidegate.Check{Key: "ann", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: scope, Algorithm: a, Events: 100, Period: period})}
	}
	minute, hour := on("user", tidegate.TokenBucket, time.Minute), on("user", tidegate.SubWindows, time.Hour)
	day, ip := on("user", tidegate.SlidingWindow, 24*time.Hour), on("ip", tidegate.FixedWindow, time.Minute)
	f := func(want []nestedCheck, checks ...tidegate.Check) {
		t.Helper()
		pending, _, err := s.prepare(checks)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := shapeOf(pending)
		if ok != (want != nil) || !slices.Equal(got.checks(), want) {
			t.Errorf("%v, %v; want %v", got.checks(), ok, want)
		}
	}
	f([]nestedCheck{{buckets, false}, {counters, false}}, minute, ip)
	f([]nestedCheck{{counters, false}, {buckets, false}}, ip, minute)
	f([]nestedCheck{{buckets, true}, {parts, false}}, minute, hour)
	f([]nestedCheck{{buckets, true}, {parts, true}, {slidings, false}}, minute, hour, day)
	f([]nestedCheck{{counters, false}, {parts, true}, {slidings, false}}, ip, hour, day)
	f([]nestedCheck{{parts, true}, {slidings, false}, {counters, false}}, hour, day, ip)
	f(nil, minute)
	f(nil, minute, ip, hour) // those of one key are apart
	f(nil, minute, hour, day, ip)
	f(nil, minute, on("user", tidegate.SlidingLog, time.Minute))
	f(nil, minute, on("user", tidegate.Concurrency, time.Minute))
}

// TestNestedAsMulti sends the same random histories of requests with several limits to nested
// scripts and to the one that is ready for anything, and wants the same decisions, and the same
// bytes in Redis after each of them.
func TestNestedAsMulti(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	server := testdep.Redis(t)
	n := &nesting{T: t}
	n.nested = openTest(t, Config{Addrs: []string{server.Socket}, pretend: n.clock})
	n.multi = openTest(t, Config{Addrs: []string{server.Socket}, pretend: n.clock})
	n.multi.onlyMulti = true
	for seed := range testdep.Longer(uint64(150), 5000) {
		n.play(seed)
	}
	if n.shaped*2 < n.asked || n.shaped == n.asked {
		t.Errorf("%d of %d requests were for nested scripts: the test has lost its point", n.shaped, n.asked)
	}
	if n.refused*20 < n.asked || n.refused*20 > n.asked*19 || n.partly*50 < n.asked {
		t.Errorf("%d of %d requests were refused, %d had a part of it: the test has lost its point", n.refused, n.asked, n.partly)
	}
}

type nesting struct {
	*testing.T
	rand          *rand.Rand
	nested, multi *Store
	now, began    time.Time
	checks        []tidegate.Check // of all limits of all subjects
	receipts      [][2]tidegate.Receipt

	asked, shaped, refused, partly int
}

func (n *nesting) clock() time.Time { return n.now }

func (n *nesting) play(seed uint64) {
	n.rand = rand.New(rand.NewPCG(seed, 1))
	n.now = time.Date(2026, time.January, 5, 1, 0, 0, 0, time.UTC).Add(time.Duration(n.rand.Int64N(1e15)).Truncate(time.Microsecond))
	n.began, n.receipts, n.checks = time.Now(), nil, nil
	for _, scope := range []string{"user", "ip", "everyone"} {
		for range 1 + n.rand.IntN(3) {
			n.checks = append(n.checks, tidegate.Check{Key: fmt.Sprint("seed ", seed), Limit: n.limit(scope)})
		}
	}
	for range 40 {
		switch n.rand.IntN(8) {
		case 0:
			n.move()
		case 1:
			n.adjust()
		default:
			n.take()
		}
		n.compareKeys()
		if n.Failed() {
			n.FailNow()
		}
	}
}

// limit is one of any size, which a nested script may know.
func (n *nesting) limit(scope string) *tidegate.Limit {
	r := n.rand
	for {
		s := tidegate.Spec{Name: "api", Scope: scope, Period: pick(r, 17*time.Millisecond, time.Second, time.Minute, time.Hour, 24*time.Hour, 90*24*time.Hour)}
		s.Algorithm = pick(r, tidegate.TokenBucket, tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.Quota,
			tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SubWindows, tidegate.SlidingLog)
		s.Events = pick(r, 1, 3, 10, 100, 1000, 1<<20, 1+r.Int64N(50))
		switch s.Algorithm {
		case tidegate.TokenBucket, tidegate.LeakyBucket:
			s.Burst = pick(r, 0, 1, 5, s.Events/2, s.Events*3)
			s.RawTime = s.Algorithm == tidegate.TokenBucket && r.IntN(5) == 0
		case tidegate.SubWindows:
			s.Parts, s.Ceiling = pick(r, 0, 1, 6, 60), r.IntN(3) == 0
		case tidegate.Quota:
			s.Period, s.Calendar, s.Zone = 0, pick(r, tidegate.Day, tidegate.Month), "America/New_York"
		}
		if l, err := tidegate.NewLimit(s); err == nil {
			return l
		}
	}
}

// move sets the clock forth, now and then back.
func (n *nesting) move() {
	by := time.Duration(n.rand.Int64N(int64(pick(n.rand, time.Millisecond, time.Second, time.Minute, 3*time.Hour, 100*24*time.Hour)))).Truncate(time.Microsecond)
	if n.rand.IntN(4) == 0 {
		by = -by
	}
	n.now = n.now.Add(by)
}

// some are checks of a few limits, mostly such that those of one subject follow each other.
func (n *nesting) some(costs func(whole int64) int64) []tidegate.Check {
	r := n.rand
	var all []tidegate.Check
	for _, i := range r.Perm(len(n.checks))[:min(len(n.checks), pick(r, 1, 2, 2, 2, 3, 3, 3, 4))] {
		c := n.checks[i]
		c.Cost = costs(c.Limit.Capacity())
		all = append(all, c)
	}
	if r.IntN(4) > 0 {
		slices.SortStableFunc(all, func(a, b tidegate.Check) int { return len(a.Limit.Scope) - len(b.Limit.Scope) })
	}
	return all
}

func (n *nesting) take() {
	r := n.rand
	checks := n.some(func(whole int64) int64 {
		return pick(r, 0, 1, 1, 1, 1+r.Int64N(3), min(whole, 30), whole/40+1, min(whole+1, 40))
	})
	for i := range checks {
		c := &checks[i]
		c.Advisory = r.IntN(8) == 0
		c.MaxWait = pick(r, 0, 0, 0, 0, time.Millisecond, time.Minute, math.MaxInt64)
		c.Floor = pick(r, 0, 0, 0, 0, 1, r.Int64N(4))
	}
	o := takeParams{copies: pick[int64](r, 1, 1, 2, 3, 10, math.MaxInt64)}
	if slices.ContainsFunc(checks, func(c tidegate.Check) bool { return c.Limit.Algorithm == tidegate.SlidingLog }) {
		o.copies = min(o.copies, 10) // each event is an element of a list
	}
	if r.IntN(4) == 0 {
		o.lease = pick[int64](r, 1, 20_000, 5_000_000)
	}
	others := slices.Clone(checks)
	n.asked++
	if pending, _, err := n.nested.prepare(checks); err == nil {
		if _, ok := shapeOf(pending); ok {
			n.shaped++
		}
	}
	got, rest, err := n.nested.takeWithRest(n.Context(), checks, o)
	if err != nil {
		n.Fatalf("nested: %v", err)
	}
	want, wantRest, err := n.multi.takeWithRest(n.Context(), others, o)
	if err != nil {
		n.Fatalf("multi: %v", err)
	}
	if got != want || rest != wantRest || !slices.Equal(checks, others) {
		n.Errorf("%d copies of %+v\n\tgot  %+v, rest %+v\n\twant %+v, rest %+v, %+v", o.copies, checks, got, rest, want, wantRest, others)
	}
	switch {
	case !got.OK:
		n.refused++
	case got.Granted < o.copies:
		n.partly++
	}
	if got.OK {
		n.receipts = append(n.receipts, [2]tidegate.Receipt{got.Receipt, want.Receipt})
	}
}

// adjust gives back something of an earlier charge, or charges unasked.
func (n *nesting) adjust() {
	if len(n.receipts) == 0 {
		return
	}
	r := pick(n.rand, n.receipts...)
	checks := n.some(func(int64) int64 { return pick(n.rand, -1, 1, -n.rand.Int64N(30), n.rand.Int64N(30)) })
	for i, s := range []*Store{n.nested, n.multi} {
		if err := s.Adjust(n.Context(), r[i], slices.Clone(checks)); err != nil {
			n.Fatal(err)
		}
	}
}

// compareKeys wants both to have the same under the keys of all subjects, for as long.
func (n *nesting) compareKeys() {
	got, want := n.stored(n.nested), n.stored(n.multi)
	for i, g := range got {
		w := want[i]
		if g.name != w.name || g.dump != w.dump {
			n.Errorf("%s is\n\t%q, want %s\n\t%q", g.name, g.dump, w.name, w.dump)
		}
		if (g.life < 0) != (w.life < 0) || (g.life-w.life).Abs() > time.Since(n.began)+time.Second {
			n.Errorf("%s lives for %s, want %s", g.name, g.life, w.life)
		}
	}
}

// storedKey is what is under a key, and for how long; below 0 if that is for ever, or nothing.
type storedKey struct {
	name, dump string // the name without the prefix
	life       time.Duration
}

// stored returns what a store has for all checks.
func (n *nesting) stored(s *Store) (all []storedKey) {
	for _, c := range n.checks {
		lim, err := s.compile(c.Limit)
		if err != nil {
			n.Fatal(err)
		}
		names := []string{lim.name(c.Key)}
		if lim.isRuns() {
			names = append(names, lim.altKey(names[0]))
		}
		for _, name := range names {
			key := storedKey{name: strings.TrimPrefix(name, s.prefix)}
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	client, err := s.endpoints[0].client.get(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	var commands []rueidis.Completed
	for _, key := range all {
		commands = append(commands, client.B().Dump().Key(s.prefix+key.name).Build(), client.B().Pttl().Key(s.prefix+key.name).Build())
	}
	replies := client.DoMulti(n.Context(), commands...)
	for i := range all {
		dump, err := replies[2*i].ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			n.Fatal(err)
		}
		life, err := replies[2*i+1].AsInt64()
		if err != nil {
			n.Fatal(err)
		}
		all[i].dump, all[i].life = dump, time.Duration(life)*time.Millisecond
	}
	return all
}

// In a nested script the checks inside of a block see the variables of its law, so that no law
// may give one the name of a function that another law needs, or of what all checks have in
// common.
func TestLawsHideNothing(t *testing.T) {
	word := regexp.MustCompile(`[a-z]\w*`)
	local := regexp.MustCompile(`^local (?:function (\w+)|([\w, ]+))`) // not inside of a function
	named := map[string]bool{}
	for _, file := range []string{"prelude", "scale", "muldiv", "runs", "bucket", "counter", "sliding", "parts", "nest"} {
		text, err := files.ReadFile("script/" + file + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		section := ""
		for line := range strings.SplitSeq(string(text), "\n") {
			if name, ok := strings.CutPrefix(line, "--:"); ok {
				section = name
			}
			if found := local.FindStringSubmatch(line); found != nil && slices.Contains([]string{"", "help", "start", "own"}, section) {
				for _, name := range word.FindAllString(found[1]+" "+found[2], -1) {
					named[name] = true
				}
			}
		}
	}
	if !named["takes"] || !named["nth"] || !named["now"] || !named["muldiv"] || !named["fits"] || !named["granted"] || !named["box"] {
		t.Fatalf("the test has lost its point: %v", named)
	}
	for k := buckets; k <= parts; k++ {
		for _, name := range word.FindAllString(k.section("vars"), -1) {
			if named[name] {
				t.Errorf("%s.lua has a variable %s, which hides what others need", k.file(), name)
			}
		}
	}
}
