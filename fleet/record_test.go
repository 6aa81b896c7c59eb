package fleet

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// safe reports whether a text can be shown to anybody.
func safe(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func checkRecord(t *testing.T, r *record) {
	t.Helper()
	for _, f := range []struct {
		text string
		most int
	}{{r.Name, maxName}, {r.Version, maxVersion}, {r.Rules, maxRules}, {r.Server, maxServer}, {r.Status, 10}} {
		if !safe(f.text, f.most) {
			t.Errorf("%q is no text for a terminal", f.text)
		}
	}
	for _, name := range r.Out {
		if !safe(name, maxServer) {
			t.Errorf("%q is no name of a server", name)
		}
	}
	if len(r.Out) > maxOut || r.OutCount < 0 || r.Backlog < 0 || r.Leases < 0 || r.LeasedEvents < 0 || r.Instances < 0 ||
		r.Up.duration() < 0 || r.For.duration() < 0 || r.Within.duration() < 0 || r.Lag.duration() < 0 {
		t.Errorf("out of bounds: %+v", r)
	}
}

// hostile is a text of up to so many runes of every kind.
func hostile(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		switch r.IntN(5) {
		case 0:
			b.WriteByte(byte(r.Uint32())) // not UTF-8
		case 1:
			b.WriteByte(byte(r.IntN(32)))
		case 2:
			b.WriteString([]string{`"`, `\`, "\x1b[2J", "\u202e", "\u2028", "\u0301", "<&>", "\ufffd", "界"}[r.IntN(9)])
		default:
			b.WriteRune(rune(r.IntN(unicode.MaxRune)))
		}
	}
	return b.String()
}

// Whatever the names and numbers of an instance are, what it tells fits and can be read, and
// names that are sane come back as they are.
func TestRecordIsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() int64 {
		return []int64{0, 1, -1, math.MaxInt64, math.MinInt64, random.Int64()}[random.IntN(6)]
	}
	for range testdep.Longer(2000, 20_000) {
		most := []int{0, 10, 1000}[random.IntN(3)]
		in := record{
			Name: hostile(random, most), Version: hostile(random, most), Rules: hostile(random, most), Server: hostile(random, most),
			Status: []string{OK, Partial, Degraded, Recovering, "", "\x1b]0;"}[random.IntN(6)],
			Up:     secondsOf(time.Duration(number())), For: secondsOf(time.Duration(number())),
			Offset: secondsOf(time.Duration(number())), Within: secondsOf(time.Duration(number())),
			OutCount: int(number()), Backlog: number(), Leases: int(number()), LeasedEvents: number(), Instances: int(number()), Lag: secondsOf(time.Duration(number())),
		}
		for range random.IntN(70) {
			in.Out = append(in.Out, hostile(random, most))
		}
		text := in.encode()
		if text == "" || len(text) > chain.MaxAbout {
			t.Fatalf("%d bytes: %q", len(text), text)
		}
		out, ok := readRecord(text)
		if !ok {
			t.Fatalf("cannot be read: %q", text)
		}
		checkRecord(t, &out)
		if again := out.encode(); again != text {
			t.Errorf("%q became %q", text, again)
		}
	}
	sane := record{
		Name: "web-7d9f (eu) 界:4711", Version: "v0.1.0", Rules: "0123456789abcdef", Up: 12.5, Offset: -0.000123, Within: 0.0002,
		Server: "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535", Status: Partial, For: 3, Out: []string{"10.0.0.1:6379", "10.0.0.2:6379"}, OutCount: 2,
		Backlog: 7, Leases: 3, LeasedEvents: 1500, Instances: 20, Lag: 0.101,
	}
	if got, ok := readRecord(sane.encode()); !ok || !reflect.DeepEqual(got, sane) {
		t.Errorf("%+v became %+v", sane, got)
	}
}

// The longest record there can be still names its instance.
func TestLongestRecordIsWhole(t *testing.T) {
	long := strings.Repeat("界", 100)
	r := record{
		Name: long, Version: long, Rules: long, Server: long, Status: Recovering, Up: math.MaxFloat64, For: 1.0 / 3 * maxSeconds, Offset: -1.0 / 3 * maxSeconds, Within: 2.0 / 3 * maxSeconds,
		Out: []string{long, long, long}, OutCount: math.MaxInt, Backlog: math.MaxInt64, Leases: math.MaxInt, LeasedEvents: math.MaxInt64, Instances: math.MaxInt, Lag: 1.0 / 3 * maxSeconds,
	}
	got, ok := readRecord(r.encode())
	if !ok || len(got.Name) < maxName-3 || len(got.Server) < maxServer-3 || got.OutCount != maxCount || got.Instances != maxCount {
		t.Errorf("%q is read as %+v", r.encode(), got)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(`{"name":"a\u001b[2Jb","status":"ok","up":1e308,"clock":-1e308,"within":1,"of":-3,"out":["\u202e"]}`)
	f.Add(`{"status":"ok"}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := readRecord(text)
		if !ok {
			return
		}
		checkRecord(t, &r)
		m := memberOf(chain.Entry{ID: text, About: text}, time.Now())
		if !safe(m.ID, maxName) || m.Started.After(time.Now()) {
			t.Errorf("%+v", m)
		}
		if _, err := json.Marshal(m); err != nil {
			t.Error(err)
		}
	})
}

// A comparison that took long does not replace a better one, unless the two contradict each
// other or the better one is old. It is told once when the clocks differ, and once when they
// no longer do.
func TestClockWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		w := clockWatch{tell: func(c Clock) { told = append(told, c.String()) }}
		f := func(pause, offset, within, want time.Duration, off bool) {
			t.Helper()
			time.Sleep(pause)
			w.compared(chain.Clock{Offset: offset, Within: within})
			if is, isOff := w.best(); is.Offset != want || isOff != off {
				t.Errorf("%+v, %v; want %s, %v", is, isOff, want, off)
			}
		}
		const ms, s = time.Millisecond, time.Second
		f(0, 400*ms, 450*ms, 400*ms, false) // may be none at all
		f(3*s, 2*ms, 1*ms, 2*ms, false)     // better
		f(3*s, 300*ms, 300*ms, 2*ms, false) // worse, and no contradiction
		f(3*s, -300*ms, 302*ms, 2*ms, false)
		f(3*s, 110*ms, 20*ms, 110*ms, false) // a contradiction, but perhaps below 100 ms
		f(3*s, 110*ms, 9*ms, 110*ms, true)
		f(3*s, 105*ms, 8*ms, 105*ms, true) // not over for certain
		f(3*s, 80*ms, 300*ms, 105*ms, true)
		f(20*s, 90*ms, 300*ms, 90*ms, false) // nothing better is known of late
		f(3*s, -time.Hour, s, -time.Hour, true)
		f(3*s, 0, ms, 0, false)
		want := []string{"110ms ahead of Redis", "90ms ahead of Redis", "1h0m0s behind Redis", "0s ahead of Redis"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

func TestClockString(t *testing.T) {
	f := func(c Clock, want string) {
		t.Helper()
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(Clock{}, "not compared with Redis")
	f(Clock{Offset: 1234567 * time.Nanosecond, Within: 1}, "1.23ms ahead of Redis")
	f(Clock{Offset: -1534 * time.Millisecond, Within: 1, Server: "10.0.0.1:6379"}, "1.53s behind Redis at 10.0.0.1:6379")
	f(Clock{Offset: 90*time.Minute + time.Millisecond, Within: 1}, "1h30m0s ahead of Redis")
}
