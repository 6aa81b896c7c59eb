package xds

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/envoy"
)

// limited returns the limit of a descriptor of one entry; "" if there is none.
func limited(set *envoy.Set, domain, key string) string {
	d := set.Domain(domain)
	if d == nil {
		return ""
	}
	r := d.Find([]envoy.Entry{{Key: key, Value: "x"}})
	if r == nil {
		return ""
	}
	return r.Limits[0].String()
}

func TestResponsesAreAcknowledged(t *testing.T) {
	p := newPlane(t, socket(t), nil)
	p.serve("v1", config("a", "k"), config("b", "k"))
	var changes []string
	w := follow(t, p.address(), func(o *Options) {
		o.Metadata = map[string]string{"zone": "z1"}
		o.Version = "1.2"
		o.OnChange = func(old, now *envoy.Set) {
			changes = append(changes, strings.Join(old.Domains(), "")+">"+strings.Join(now.Domains(), ""))
		}
	})
	await(t, w)
	if got := w.Set().Domains(); !slices.Equal(got, []string{"a", "b"}) || limited(w.Set(), "a", "k") == "" {
		t.Fatalf("domains %v, limit %q", got, limited(w.Set(), "a", "k"))
	}
	p.last("the acknowledgement", acks("v1"))
	first := p.asked()[0]
	if first.GetTypeUrl() != configType || first.GetNode().GetId() != node || first.GetVersionInfo() != "" || len(first.GetResourceNames()) > 0 ||
		first.GetNode().GetMetadata().GetFields()["zone"].GetStringValue() != "z1" || first.GetNode().GetUserAgentVersion() != "1.2" {
		t.Errorf("first request: %v", first)
	}

	p.serve("v2", config("b", "k", "l"), config("c", "k")) // a removed resource is a removed domain
	p.last("v2", acks("v2"))
	if got := w.Set().Domains(); !slices.Equal(got, []string{"b", "c"}) || limited(w.Set(), "b", "l") == "" {
		t.Errorf("v2: %v", got)
	}
	if st := w.Status(); !st.Connected || st.Version != "v2" || st.Domains != 2 || st.Updates != 2 || st.Rejected != 0 || st.Error != "" || st.LoadedAt.IsZero() {
		t.Errorf("status: %+v", st)
	}
	p.serve("v3", config("c", "k"), config("b", "k", "l")) // another version of the same
	p.last("v3", acks("v3"))
	if st := w.Status(); st.Version != "v3" || st.Updates != 2 {
		t.Errorf("the same rules: %+v", st)
	}
	p.serve("v4") // a server that had rules on this stream, and has none now, means it
	p.last("v4", acks("v4"))
	if got := w.Set().Domains(); len(got) > 0 || w.Status().Kept {
		t.Errorf("v4: %v", got)
	}
	w.Close()
	if want := []string{">ab", "ab>bc", "bc>"}; !slices.Equal(changes, want) {
		t.Errorf("changes %q, want %q", changes, want)
	}
}

func (p *plane) address() string {
	if p.listener.Addr().Network() == "unix" {
		return "unix:" + p.listener.Addr().String()
	}
	return p.listener.Addr().String()
}

func TestRulesAreRefused(t *testing.T) {
	p := newPlane(t, socket(t), nil)
	p.serve("good 0", config("a", "k"))
	w := follow(t, p.address())
	await(t, w)
	limits := limited(w.Set(), "a", "k")
	bad := func(edit func(*ratelimit.RateLimitConfig)) *ratelimit.RateLimitConfig {
		c := config("bad", "k")
		edit(c)
		return c
	}
	good := "good 0" // the version in force
	n := 0
	p.last("the first", acks("good 0"))
	f := func(what string, c *ratelimit.RateLimitConfig, want ...string) {
		t.Helper()
		n++
		before := w.Status()
		p.serve(fmt.Sprint("bad ", n), config("a", "other"), c)
		testdep.Eventually(t, what, func() bool { return w.Status().Rejected > before.Rejected })
		got := p.last(what, refuses)
		text := got.GetErrorDetail().GetMessage()
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the server was told\n%s\nwithout %q", what, text, part)
			}
		}
		if got.GetVersionInfo() != good || limited(w.Set(), "a", "k") != limits || limited(w.Set(), "a", "other") != "" {
			t.Errorf("%s: the previous rules are not in force", what)
		}
		if st := w.Status(); st.Error == "" || len(st.Problems) == 0 || st.Version != good {
			t.Errorf("%s: status %+v", what, st)
		}
		good = fmt.Sprint("good ", n)
		p.serve(good, config("a", "k"))
		p.last(good, acks(good))
		if st := w.Status(); st.Error != "" || len(st.Problems) > 0 {
			t.Errorf("%s: %+v", good, st)
		}
	}
	f("no unit", bad(func(c *ratelimit.RateLimitConfig) { c.Descriptors[0].RateLimit.Unit = 0 }),
		"xds:bad:5:", "    unit: unknown\n", "^^^^^^^")
	f("a unit of the future", bad(func(c *ratelimit.RateLimitConfig) { c.Descriptors[0].RateLimit.Unit = 99 }),
		"xds:bad:5:", "    unit: 99\n", "^^")
	f("no domain", bad(func(c *ratelimit.RateLimitConfig) { c.Domain = "" }), "xds:bad:1:", `domain: ""`, "^^")
	f("no key", bad(func(c *ratelimit.RateLimitConfig) { c.Descriptors[0].Key = "" }), "xds:bad:3:", `key: ""`, "^^")
	f("a key twice", bad(func(c *ratelimit.RateLimitConfig) { c.Descriptors = append(c.Descriptors, c.Descriptors[0]) }), "xds:bad:7:", "xds:bad:3", "^")
	f("unlimited with a unit", bad(func(c *ratelimit.RateLimitConfig) { c.Descriptors[0].RateLimit.Unlimited = true }), "xds:bad:", "unlimited", "^")
	f("replaces itself", bad(func(c *ratelimit.RateLimitConfig) {
		r := c.Descriptors[0].RateLimit
		r.Name, r.Replaces = "me", []*ratelimit.RateLimitReplace{{Name: "me"}}
	}), "xds:bad:", "me", "^")
	f("two of one domain", bad(func(c *ratelimit.RateLimitConfig) { c.Domain = "a" }), "xds:bad:1:", "xds:a:1", "^")
	f("an unknown field", bad(func(c *ratelimit.RateLimitConfig) {
		c.Descriptors[0].ProtoReflect().SetUnknown([]byte{0x78, 1}) // number 15, a varint
	}), "xds:bad:3:3: error", "field number 15", "    - key: k\n", "      ^^^^^^\n")
	f("an unknown field of a limit", bad(func(c *ratelimit.RateLimitConfig) {
		c.Descriptors[0].RateLimit.ProtoReflect().SetUnknown([]byte{0x78, 1})
	}), "xds:bad:4:", "field number 15", "rate_limit:", "^^^^^^^^^^^")
	f("an unknown field of a configuration", bad(func(c *ratelimit.RateLimitConfig) {
		c.ProtoReflect().SetUnknown([]byte{0x78, 1})
	}), "xds:bad:1:1:", "field number 15", "domain: bad", "^^^^^^^^^^^")
	f("many problems", bad(func(c *ratelimit.RateLimitConfig) {
		for range 5000 {
			c.Descriptors = append(c.Descriptors, &ratelimit.RateLimitDescriptor{Key: "", Value: strings.Repeat("v", 100)})
		}
	}), "xds:bad:", "more")
}

// The server is told no more than fits a log.
func TestRefusalsAreShort(t *testing.T) {
	c := config("bad")
	for range 5000 {
		c.Descriptors = append(c.Descriptors, &ratelimit.RateLimitDescriptor{Key: strings.Repeat("é", 20), RateLimit: limit(1, 77)})
	}
	_, _, err := compile(packed(t, c), envoy.Options{})
	if text := refusal(err); len(text) > toldBytes+10 || !strings.Contains(text, "more") {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}

// go-control-plane sends what was refused again at once, whenever it is.
func TestRefusalsArePaced(t *testing.T) {
	p := newPlane(t, socket(t), nil)
	p.serve("bad", config("", "k"))
	slow := quick
	slow.quiet, slow.again = time.Millisecond, time.Hour
	began := time.Now()
	w := followAt(t, p.address(), slow)
	testdep.Eventually(t, "refusals", func() bool { return w.Status().Rejected >= 12 })
	if d := time.Since(began); d < 500*time.Millisecond { // half of the 2¹⁰ ms before the last
		t.Errorf("12 refusals within %v", d)
	}
}

// While a server is gone, rules stay in force; one that comes back is believed, whatever it
// calls its versions: Envoy Gateway counts from 1 whenever it is started.
func TestServersComeAndGo(t *testing.T) {
	at := socket(t)
	p := newPlane(t, at, nil)
	p.serve("1", config("a", "k"))
	w := follow(t, at)
	await(t, w)
	for i, keys := range [][]string{{"k", "l"}, {"m"}, {"k"}} {
		p.grpc.Stop()
		testdep.Eventually(t, "the loss", func() bool { return !w.Status().Connected && w.Status().Error != "" })
		if limited(w.Set(), "a", "k") == "" && i == 0 {
			t.Fatal("no rules without a server")
		}
		p = newPlane(t, at, nil)
		p.serve("1", config("a", keys...))
		testdep.Eventually(t, "the new rules", func() bool {
			for _, k := range keys {
				if limited(w.Set(), "a", k) == "" {
					return false
				}
			}
			return len(w.Set().Domain("a").Rules()) == len(keys)
		})
		p.last("the acknowledgement", acks("1"))
		if first := p.asked()[0]; first.GetVersionInfo() != "" || first.GetResponseNonce() != "" {
			t.Errorf("the first request of a stream: %v", first)
		}
		if st := w.Status(); !st.Connected || st.Error != "" {
			t.Errorf("status: %+v", st)
		}
	}
}

// Two servers of different versions take turns, as while a control plane is upgraded.
func TestTwoServers(t *testing.T) {
	at := socket(t)
	blue, green := config("a", "blue"), config("a", "green")
	p := newPlane(t, at, nil)
	p.serve("7", blue)
	w := follow(t, at)
	await(t, w)
	for i := range 6 {
		p.grpc.Stop()
		p = newPlane(t, at, nil)
		version, c, key := "7", blue, "blue"
		if i%2 == 0 {
			version, c, key = "v1.8-rc1", green, "green"
		}
		p.serve(version, c)
		testdep.Eventually(t, version, func() bool { return limited(w.Set(), "a", key) != "" && w.Status().Version == version })
	}
}

// A server that has just been started may not know its rules yet.
func TestServerBeginsWithNothing(t *testing.T) {
	at := socket(t)
	p := newPlane(t, at, nil)
	p.serve("1", config("a", "k"))
	w := follow(t, at)
	await(t, w)
	p.grpc.Stop()
	p = newPlane(t, at, nil)
	p.serve("1")
	p.last("nothing is acknowledged", acks("1"))
	if st := w.Status(); limited(w.Set(), "a", "k") == "" || !st.Kept || st.Error != "" {
		t.Errorf("rules are gone: %+v", st)
	}
	p.serve("2", config("b", "k"))
	p.last("rules", acks("2"))
	if got := w.Set().Domains(); !slices.Equal(got, []string{"b"}) || w.Status().Kept {
		t.Errorf("domains %v", got)
	}
	p.serve("3")
	p.last("no rules any more", acks("3"))
	if got := w.Set().Domains(); len(got) > 0 {
		t.Errorf("domains %v", got)
	}
}

// Whoever waits for the first rules is told what is in the way.
func TestAwait(t *testing.T) {
	f := func(w *Watcher, seen func(Status) bool, want string) {
		t.Helper()
		testdep.Eventually(t, want, func() bool { return seen(w.Status()) })
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := w.Await(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if len(w.Set().Domains()) > 0 {
			t.Error("there are rules")
		}
	}
	f(follow(t, socket(t)), func(s Status) bool { return s.Error != "" }, "no such file")
	p := newPlane(t, socket(t), nil)
	f(follow(t, p.address()), func(s Status) bool { return s.Connected }, `has sent no rules for the node "envoy-ratelimit"`)
	p.serve("1", config("", "k"))
	w := follow(t, p.address())
	f(w, func(s Status) bool { return s.Rejected > 0 }, `domain: ""`)
	p.serve("2")
	await(t, w) // nothing is an answer, too
	w.Close()
	if err := w.Await(context.Background()); err != nil {
		t.Error(err)
	}
}

// Options.Accept refuses what others must not have.
func TestAccept(t *testing.T) {
	p := newPlane(t, socket(t), nil)
	p.serve("1", config("taken", "k"))
	w := follow(t, p.address(), func(o *Options) {
		o.Accept = func(set *envoy.Set) error {
			if set.Domain("taken") != nil {
				return context.DeadlineExceeded
			}
			return nil
		}
	})
	got := p.last("the refusal", refuses)
	if got.GetErrorDetail().GetMessage() != context.DeadlineExceeded.Error() || w.Set() != nil {
		t.Errorf("%v", got)
	}
	p.serve("2", config("free", "k"))
	await(t, w)
}

func TestCloseWhileNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // its backlog takes the connection, and nobody speaks
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := follow(t, l.Addr().String())
	w.Close()
	w.Close()
	if w.Await(context.Background()) == nil {
		t.Error("no error")
	}
}

var _ discovery.AggregatedDiscoveryServiceServer = (*script)(nil)
