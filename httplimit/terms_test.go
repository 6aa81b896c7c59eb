package httplimit

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// ruled is the answer of a gate to one request, by a limit of 5 a minute with
// terms.
func ruled(t *testing.T, o Options, d tidegate.Decision, terms tidegate.Terms, change ...func(*http.Request)) (status int, h http.Header, body string) {
	t.Helper()
	l := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 5, Period: time.Minute, Terms: &terms})
	w := get(o.Gate(tidegate.NewGate(everyone{l}, &script{decisions: []tidegate.Decision{d}}))(hello), change...)
	return w.Code, w.Header(), w.Body.String()
}

var usedUp = tidegate.Decision{RetryAfter: 14500 * time.Millisecond, ResetAfter: time.Minute}

func TestAnswerOfARule(t *testing.T) {
	f := func(a tidegate.Answer, status int, kind, body string) {
		t.Helper()
		code, h, got := ruled(t, Options{}, usedUp, tidegate.Terms{Rule: "the rule", Answer: a})
		if code != status || h.Get("Content-Type") != kind || !strings.Contains(got, body) || h.Get("Retry-After") != "15" {
			t.Errorf("%+v: %d %v\n%s", a, code, h, got)
		}
	}
	const text, problem = "text/plain; charset=utf-8", "application/problem+json"
	f(tidegate.Answer{}, 429, problem, `"status":429,"detail":"The quota of the policy api is used up; try again in 15 s."`)
	f(tidegate.Answer{Status: 402}, 402, problem, `"status":402`)
	f(tidegate.Answer{Message: "Buy \"more\"."}, 429, problem, `"detail":"Buy \"more\"."`)
	f(tidegate.Answer{Body: "{rule} has {remaining} of {limit}, {retry_after} s"}, 429, text, "the rule has 0 of 5, 15 s")
	f(tidegate.Answer{Status: 503, Body: "<p>{rule}", ContentType: "text/html"}, 503, "text/html", "<p>the rule")
	f(tidegate.Answer{Body: `{"error":{"of":"{rule}","more":{limit}}}`, ContentType: "application/json"}, 429, "application/json", `{"error":{"of":"the rule","more":5}}`)
	// What cannot be sent is not: a status that is none, a type of two lines.
	for _, s := range []int{-1, 99, 101, 600, 1000} {
		f(tidegate.Answer{Status: s}, 429, problem, `"status":429`)
	}
	f(tidegate.Answer{Body: "x", ContentType: "text/html\r\nX-Evil: 1"}, 429, text, "x")
}

func TestAnswerIsFilledInOnce(t *testing.T) {
	values := map[string]string{"rule": "{limit}", "limit": "5"}
	f := func(text, want string) {
		t.Helper()
		got := fill(text, func(name string) (string, bool) { v, ok := values[name]; return v, ok })
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	f("", "")
	f("no braces", "no braces")
	f("{limit}", "5")
	f("{limit}{limit}", "55")
	f("{rule}", "{limit}") // what a value says is not looked at
	f("{ limit }", "{ limit }")
	f("{Limit}", "{Limit}")
	f("{{limit}}", "{5}")
	f("{limit", "{limit")
	f("{", "{")
	f("}{", "}{")
	f("{}", "{}")
	f("{{.Env}} ${limit} {rule.name}", "{{.Env}} $5 {rule.name}")
}

func TestNameIsEscapedForTheTypeOfTheBody(t *testing.T) {
	f := func(kind, body, want string) {
		t.Helper()
		_, _, got := ruled(t, Options{}, usedUp, tidegate.Terms{Rule: `<b>"x"`, Answer: tidegate.Answer{Body: body, ContentType: kind}})
		if got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		if strings.Contains(kind, "json") && !json.Valid([]byte(got)) {
			t.Errorf("not JSON: %s", got)
		}
	}
	f("", "{rule}", `<b>"x"`)
	f("text/html; charset=utf-8", "{rule}", "&lt;b&gt;&#34;x&#34;")
	f("application/json", `["{rule}"]`, `["\u003cb\u003e\"x\""]`)
}

func TestAnswerLeavesTheBodyOutForHead(t *testing.T) {
	code, _, got := ruled(t, Options{}, usedUp, tidegate.Terms{Answer: tidegate.Answer{Body: "x"}}, func(r *http.Request) { r.Method = http.MethodHead })
	if code != 429 || got != "" {
		t.Errorf("%d %q", code, got)
	}
}

// When the store could not tell, the rule's words for a used-up limit are wrong.
func TestAnswerIsNotForStoreFailures(t *testing.T) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 5, Period: time.Minute, Terms: &tidegate.Terms{
		Answer:   tidegate.Answer{Status: 402, Body: "buy more", Message: "buy more"},
		Handling: tidegate.Handling{OnStoreFailure: tidegate.FailClosed},
	}})
	w := get(Gate(tidegate.NewGate(everyone{l}, &script{err: http.ErrServerClosed}))(hello))
	if w.Code != 503 || strings.Contains(w.Body.String(), "buy") || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestRuleChoosesTheDialect(t *testing.T) {
	admitted := tidegate.Decision{OK: true, Granted: 1, Remaining: 3, ResetAfter: time.Minute, Receipt: tidegate.Receipt{At: at}}
	f := func(o Options, a tidegate.Answer, has string, hasNot ...string) {
		t.Helper()
		for _, d := range []tidegate.Decision{admitted, usedUp} {
			_, h, _ := ruled(t, o, d, tidegate.Terms{Answer: a})
			if has != "" && h.Get(has) == "" {
				t.Errorf("%+v, %+v: no %s in %v", o, a, has, h)
			}
			for _, name := range hasNot {
				if h.Get(name) != "" {
					t.Errorf("%+v, %+v: %s in %v", o, a, name, h)
				}
			}
		}
	}
	f(Options{}, tidegate.Answer{Dialects: []string{"draft6"}}, "RateLimit-Limit", "RateLimit")
	f(Options{}, tidegate.Answer{Dialects: []string{"x"}}, "X-RateLimit-Limit", "RateLimit")
	f(Options{}, tidegate.Answer{Dialects: []string{"none"}}, "", "RateLimit", "RateLimit-Policy")
	f(Options{Headers: X}, tidegate.Answer{Dialects: []string{"draft11"}}, "RateLimit", "X-RateLimit-Limit")
	f(Options{}, tidegate.Answer{Dialects: []string{"draft11", "x"}}, "RateLimit", "RateLimit-Limit")
	f(Options{}, tidegate.Answer{Dialects: []string{"x", "draft11"}}, "X-RateLimit-Limit", "RateLimit-Limit")
	f(Options{}, tidegate.Answer{Dialects: []string{"x", "draft6"}}, "RateLimit-Limit", "RateLimit")
	f(Options{}, tidegate.Answer{Dialects: []string{"none", "x"}}, "RateLimit", "X-RateLimit-Limit") // nonsense
	f(Options{Headers: X}, tidegate.Answer{Reset: "epoch"}, "X-RateLimit-Reset", "RateLimit")
	if _, h, _ := ruled(t, Options{Headers: X, Reset: ResetEpoch}, admitted, tidegate.Terms{Answer: tidegate.Answer{Dialects: []string{"x"}, Reset: "pirate"}}); len(h.Get("X-RateLimit-Reset")) < 5 {
		t.Errorf("a reset that is none takes that of the options away: %v", h)
	}
	f(Options{Headers: X}, tidegate.Answer{Dialects: []string{"pirate"}}, "X-RateLimit-Limit")
	for reset, want := range map[string]bool{"": false, "delta": false, "epoch": true, "pirate": false} {
		_, h, _ := ruled(t, Options{}, admitted, tidegate.Terms{Answer: tidegate.Answer{Dialects: []string{"x"}, Reset: reset}})
		if got := h.Get("X-RateLimit-Reset"); len(got) > 5 != want {
			t.Errorf("reset %q: %s", reset, got)
		}
	}
}

func TestAccessRuleIsForbidden(t *testing.T) {
	f := func(terms *tidegate.Terms, status int, detail string) {
		t.Helper()
		l := tidegate.MustLimit(tidegate.Spec{Name: "members only", Algorithm: tidegate.Deny, Terms: terms})
		w := get(Gate(tidegate.NewGate(all(tidegate.Check{Limit: l}), &script{}))(hello))
		var p problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatalf("%v in %s", err, w.Body)
		}
		if w.Code != status || p.Status != status || p.Detail != detail || p.Title != http.StatusText(status) || p.Type != "about:blank" ||
			len(p.Violated) > 0 || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		for name := range w.Header() {
			if name != "Content-Type" && name != "X-Content-Type-Options" && name != "Cache-Control" {
				t.Errorf("it has a %s", name)
			}
		}
	}
	f(nil, 403, "The policy members only does not allow this request.")
	f(&tidegate.Terms{Answer: tidegate.Answer{Message: "for subscribers only"}}, 403, "for subscribers only")
	f(&tidegate.Terms{Answer: tidegate.Answer{Status: 404, Dialects: []string{"x"}}}, 404, "The policy members only does not allow this request.")
	f(&tidegate.Terms{Answer: tidegate.Answer{Status: 400, Message: "say who you are"}}, 400, "say who you are")
}

// Clients are told of the limit that they have, not of the ceiling above it.
func TestHeadersTellTheNominalLimit(t *testing.T) {
	nominal := tidegate.MustLimit(tidegate.Spec{
		Name: "search", Scope: "nominal", Events: 10, Period: time.Minute, Terms: &tidegate.Terms{Role: tidegate.Marks},
	})
	ceiling := tidegate.MustLimit(tidegate.Spec{Name: "search", Events: 12, Period: time.Minute, Terms: &tidegate.Terms{Answer: tidegate.Answer{Nominal: nominal}}})
	rules := all(tidegate.Check{Key: "a", Limit: nominal, Cost: 1, Advisory: true}, tidegate.Check{Key: "a", Limit: ceiling, Cost: 1})
	f := func(o Options, check func(h http.Header, left, soft string)) {
		synctest.Test(t, func(t *testing.T) {
			h := o.Gate(tidegate.NewGate(rules, memory.New()))(hello)
			for i := 1; i <= 14; i++ {
				w := get(h)
				soft := ""
				if i > 10 && i <= 12 {
					soft = "true"
				}
				if w.Code == 200 != (i <= 12) {
					t.Errorf("request %d: status %d", i, w.Code)
				}
				check(w.Header(), strconv.Itoa(max(0, 10-i)), soft)
			}
		})
	}
	f(Options{}, func(h http.Header, left, soft string) {
		if h.Get("RateLimit") != `"search";r=`+left+`;t=60` || h.Get("RateLimit-Policy") != `"search";q=10;w=60` || h.Get("X-RateLimit-Soft") != soft {
			t.Errorf("%s left: %v", left, h)
		}
	})
	f(Options{Headers: X}, func(h http.Header, left, soft string) {
		if h.Get("X-RateLimit-Remaining") != left || h.Get("X-RateLimit-Limit") != "10" || h.Get("X-RateLimit-Soft") != soft {
			t.Errorf("%s left: %v", left, h)
		}
	})
	f(Options{Headers: NoHeaders}, func(h http.Header, _, _ string) {
		if h.Get("X-RateLimit-Soft") != "" {
			t.Errorf("without headers: %v", h)
		}
	})
}

// A block's own numbers are not those of the rule.
func TestBlockIsToldByRetryAfterAlone(t *testing.T) {
	admitted := tidegate.Decision{OK: true, Granted: 1, Remaining: 1}
	code, h, _ := ruled(t, Options{}, admitted, tidegate.Terms{Role: tidegate.Blocks})
	if code != 200 || len(h["Ratelimit"]) > 0 {
		t.Errorf("%d %v", code, h)
	}
	code, h, got := ruled(t, Options{}, usedUp, tidegate.Terms{Role: tidegate.Blocks})
	if code != 429 || len(h["Ratelimit"]) > 0 || h.Get("Retry-After") != "15" || !strings.Contains(got, "try again in 15 s") {
		t.Errorf("%d %v %s", code, h, got)
	}
	// A refusal for want of a slot starts none: slots are in flight.
	slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 1, Period: time.Minute, Algorithm: tidegate.Concurrency, Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Block: tidegate.PerHour(1)}}})
	w := get(Gate(tidegate.NewGate(everyone{slots}, &script{decisions: []tidegate.Decision{usedUp}}))(hello))
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("%v", w.Header())
	}
}

func TestGateTellsTheRulesThePathAsSent(t *testing.T) {
	f := func(target, path, raw string) {
		t.Helper()
		var got tidegate.Request
		h := Gate(tidegate.NewGate(matchFunc(func(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
			got = *r
			return dst
		}), &script{}))(hello)
		for range 2 { // also when the memory was used before
			get(h, func(r *http.Request) { r.URL.Path, r.URL.RawPath = path, raw })
			if got.Path != path || got.RawPath != target {
				t.Errorf("path %q, raw path %q; want %q and %q", got.Path, got.RawPath, path, target)
			}
			get(h)
			if got.Path != "/" || got.RawPath != "" {
				t.Errorf("path %q, raw path %q; want / alone", got.Path, got.RawPath)
			}
		}
	}
	f("", "/a/b c", "")
	f("/a%2Fb", "/a/b", "/a%2Fb")
	f("/a/b%20c", "/a/b c", "/a%zz") // not a way to write that path
}
