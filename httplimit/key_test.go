package httplimit

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

type (
	ctxKey   struct{}
	userID   int
	userName string
)

func TestKeyFuncs(t *testing.T) {
	f := func(name string, key KeyFunc, change func(*http.Request), want string) {
		t.Helper()
		r := from("192.0.2.1:1")
		change(r)
		got, ok := key(r)
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, ok, want)
		}
	}
	header := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = values }
	}
	f("header", Header("x-api-key"), header("X-Api-Key", "k1"), "k1")
	f("two that differ", Header("X-Api-Key"), header("X-Api-Key", "k1", "k2"), "")
	f("two that say the same", Header("X-Api-Key"), header("X-Api-Key", "k1", "k1"), "k1")
	f("empty header", Header("X-Api-Key"), header("X-Api-Key", ""), "")
	f("no header", Header("X-Api-Key"), header("Other", "k1"), "")
	f("host", Header("host"), func(r *http.Request) { r.Host = "a.example" }, "a.example")
	f("path value", PathValue("tenant"), func(r *http.Request) { r.SetPathValue("tenant", "acme") }, "acme")
	f("no path value", PathValue("tenant"), func(*http.Request) {}, "")
	value := func(v any) func(*http.Request) {
		return func(r *http.Request) { *r = *r.WithContext(context.WithValue(r.Context(), ctxKey{}, v)) }
	}
	f("string", ContextValue(ctxKey{}), value("alice"), "alice")
	f("own string type", ContextValue(ctxKey{}), value(userName("alice")), "alice")
	f("own int type", ContextValue(ctxKey{}), value(userID(-7)), "-7")
	f("unsigned", ContextValue(ctxKey{}), value(uint64(7)), "7")
	f("stringer", ContextValue(ctxKey{}), value(time.Minute), "1m0s")
	f("nothing", ContextValue(ctxKey{}), func(*http.Request) {}, "")
	f("nil", ContextValue(ctxKey{}), value(nil), "")
	f("pointer", ContextValue(ctxKey{}), value(&struct{ n int }{1}), "")
}

func TestPathValueInsideAMux(t *testing.T) {
	store := &script{}
	mux := http.NewServeMux()
	mux.Handle("/t/{tenant}/", Limit(tidegate.New(store, tidegate.PerMinute(1)), PathValue("tenant"))(hello))
	get(mux, func(r *http.Request) { r.URL.Path = "/t/acme/x" })
	if len(store.keys) != 1 || store.keys[0] != "acme" {
		t.Errorf("keys %q", store.keys)
	}
}

func TestTrap20HeaderLeftOutDoesNotEscape(t *testing.T) {
	f := func(m Missing, wantKeys []string, wantStatus int) {
		t.Helper()
		store := &script{}
		h := Options{Missing: m}.Limit(tidegate.New(store, tidegate.PerMinute(1)), Header("X-User"))(hello)
		w := get(h)
		if w.Code != wantStatus || strings.Join(store.keys, " ") != strings.Join(wantKeys, " ") {
			t.Errorf("missing %d: status %d, keys %q, want %d, %q", m, w.Code, store.keys, wantStatus, wantKeys)
		}
	}
	f(CountByIP, []string{"\x00i192.0.2.1"}, 200)
	f(Skip, nil, 200)
	f(Refuse, nil, 400)
}

func TestTrap20ChosenHeaderCannotReachAnAddressesCounter(t *testing.T) {
	store := &script{}
	h := Limit(tidegate.New(store, tidegate.PerMinute(1)), Header("X-User"))(hello)
	long := strings.Repeat("x", tidegate.MaxKey+1)
	seen := map[string]string{}
	for _, user := range []string{
		"", "192.0.2.1", "\x00i192.0.2.1", "\x00k\x00i192.0.2.1", "i192.0.2.1", "@",
		long, tidegate.Key(long), "#" + tidegate.Key(long), "=x", long[1:], long + "x",
	} {
		get(h, func(r *http.Request) { r.Header["X-User"] = []string{user} })
		key := store.keys[len(store.keys)-1]
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q share the counter %q", user, other, key)
		}
		seen[key] = user
	}
}

// FuzzLimiterKey: different keys never share a counter, nor one with an address.
func FuzzLimiterKey(f *testing.F) {
	f.Add("alice", "bob")
	f.Add("\x00", "\x00k\x00")
	f.Add(strings.Repeat("a", 64), strings.Repeat("a", 65))
	f.Add("\x00k"+strings.Repeat("a", 62), strings.Repeat("a", 62))
	f.Fuzz(func(t *testing.T, a, b string) {
		ka, kb := foundKey(a), foundKey(b)
		if a != b && ka == kb {
			t.Errorf("%q and %q both become %q", a, b, ka)
		}
		if ka == addressKey(b) {
			t.Errorf("%q becomes the key of the address %q", a, b)
		}
		if len(ka) > tidegate.MaxKey+1 {
			t.Errorf("the key of %q has %d bytes", a, len(ka))
		}
	})
}

func TestLimitRefusesNonsense(t *testing.T) {
	lim := tidegate.New(&script{}, tidegate.PerMinute(1))
	f := func(name string, build func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s was taken", name)
			}
		}()
		build()
	}
	f("a nil limiter", func() { Limit(nil, IP()) })
	f("a nil key function", func() { Limit(lim, nil) })
	f("a nil gate", func() { Gate(nil) })
	f("an unknown dialect", func() { Options{Headers: 9}.Limit(lim, IP()) })
	f("an unknown reset", func() { Options{Reset: 9}.Limit(lim, IP()) })
	f("an unknown missing", func() { Options{Missing: 9}.Limit(lim, IP()) })
}

// A router that does not hand over its path values is told of, once: everybody is counted
// by address then.
func TestPathValueThatNoRouterSets(t *testing.T) {
	f := func(want int, pattern, value string) {
		t.Helper()
		var out bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
		defer slog.SetDefault(before)
		key := PathValue("tenant")
		for range 3 {
			r := httptest.NewRequest(http.MethodGet, "/ann/report", nil)
			r.Pattern = pattern
			if value != "" {
				r.SetPathValue("tenant", value)
			}
			if got, ok := key(r); got != value || ok != (value != "") {
				t.Errorf("PathValue of %q = %q, %t", pattern, got, ok)
			}
		}
		if got := strings.Count(out.String(), "have no path value"); got != want {
			t.Errorf("pattern %q, value %q: %d warnings, want %d", pattern, value, got, want)
		}
	}
	f(0, "GET /{tenant}/report", "ann")
	f(0, "/other", "") // a route without it
	f(0, "/{tenant...}", "")
	f(1, "", "")
	f(1, "/:tenant/report", "") // echo
	f(1, "/{tenant}/report", "")
}
