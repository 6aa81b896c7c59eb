package rules

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// What clients are told is whole and consistent in every algorithm, dialect and
// tier: what remains is never above the quota, and who is blocked is told as much as
// who is refused, for how long included.
func TestHeadersOfEveryLimit(t *testing.T) {
	limits := map[string]string{
		"log":     "limits: { rate: %d/minute, algorithm: sliding_log }",
		"parts":   "limits: { rate: %d/minute, algorithm: sub_windows }",
		"window":  "limits: { rate: %d/minute, algorithm: fixed_window }",
		"two":     "limits: { rate: %d/minute, algorithm: sliding_window }",
		"bucket":  "limits: { rate: %d/minute, algorithm: token_bucket }",
		"larger":  "limits: { rate: %d/minute, burst: 50, algorithm: token_bucket }",
		"smaller": "limits: { rate: %d/minute, burst: 2, algorithm: token_bucket }",
		"second":  "limits: { rate: %d/second, burst: 50, algorithm: token_bucket }",
		"several": "limits: [%d/minute, 1000/hour]",
		"soft":    "limits: %d/minute, over: { soft: 50%% }",
		"raised":  "limits: { rate: %d/minute, burst: 30, algorithm: token_bucket }, over: { soft: 50%% }",
		"from":    "limits: { from: header X-Limit, per: minute, max: 100, else: %d }",
	}
	for name, text := range limits {
		for _, dialect := range []string{"draft11", "draft6", "x", "[draft11, x]", "[x, draft6]", "[draft6, x, draft11]"} {
			for _, user := range []string{"free", "gold"} {
				src := fmt.Sprintf("version: 1\nheaders: { dialect: %s }\nidentify: { user: client header X-User }\nrules:\n"+
					"  - { name: api, per: user, %s, block: 15m, for: [{ when: { user: gold }, %s }] }\n",
					dialect, fmt.Sprintf(text, 5), fmt.Sprintf(text, 9))
				set, err := Parse("rules.yaml", []byte(src), Config{})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				now := time.Date(2026, 11, 15, 12, 0, 30, 0, time.UTC)
				store := memory.Open(memory.Config{Now: func() time.Time { return now }})
				h := httplimit.Gate(tidegate.NewGate(set, store))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				ask := func() answered {
					r := httptest.NewRequest("GET", "/", nil)
					r.Header.Set("X-User", user)
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					return readAnswer(t, dialect, w)
				}
				say := fmt.Sprintf("%s, %s, %s", name, dialect, user)
				first := ask()
				last := first
				for last.status == http.StatusOK {
					last = ask()
					if last.left < 0 || last.left > last.quota || last.quota != first.quota {
						t.Errorf("%s: %+v after %+v", say, last, first)
					}
				}
				if first.left >= first.quota || last.retry != 900 {
					t.Errorf("%s: from %+v to %+v", say, first, last)
				}
				now = now.Add(5 * time.Minute)
				if blocked := ask(); blocked.status != 429 || blocked.left != 0 || blocked.quota != first.quota || blocked.window != first.window || blocked.retry != 600 || blocked.reset < 600 {
					t.Errorf("%s: blocked %+v, before %+v", say, blocked, first)
				}
			}
		}
	}
}

// answered is what the headers of an answer say; -1 where they do not.
type answered struct {
	status, quota, window, left, reset, retry int
}

var fields = regexp.MustCompile(`;([qwrt])=(\d+)`)

// readAnswer reads the headers of one dialect, or of several that have to agree.
func readAnswer(t *testing.T, dialect string, w *httptest.ResponseRecorder) answered {
	t.Helper()
	all := strings.Split(strings.Trim(dialect, "[]"), ", ")
	one := readDialect(t, all[0], w, len(all) == 1)
	for _, other := range all[1:] {
		x := readDialect(t, other, w, false)
		// The quota of draft 11 is at least the capacity that the others tell, x has no
		// window, and its reset is not when to come back.
		if x.left != one.left || w.Code == http.StatusOK && x.reset != one.reset || x.retry != one.retry {
			t.Errorf("%s says %+v, %s says %+v", all[0], one, other, x)
		}
		one.reset = max(one.reset, x.reset)
	}
	return one
}

func readDialect(t *testing.T, dialect string, w *httptest.ResponseRecorder, alone bool) answered {
	t.Helper()
	number := func(name string) int {
		n, err := strconv.Atoi(w.Header().Get(name))
		if err != nil {
			return -1
		}
		return n
	}
	x := answered{status: w.Code, retry: number("Retry-After"), quota: -1, window: -1, left: -1, reset: -1}
	switch dialect {
	case "draft11":
		for _, m := range fields.FindAllStringSubmatch(w.Header().Get("RateLimit")+w.Header().Get("RateLimit-Policy"), -1) {
			n, _ := strconv.Atoi(m[2])
			*map[string]*int{"q": &x.quota, "w": &x.window, "r": &x.left, "t": &x.reset}[m[1]] = n
		}
	case "draft6":
		x.quota, x.left, x.reset = number("RateLimit-Limit"), number("RateLimit-Remaining"), number("RateLimit-Reset")
		quota, window, _ := strings.Cut(w.Header().Get("RateLimit-Policy"), ";w=")
		x.window, _ = strconv.Atoi(window)
		if n, _ := strconv.Atoi(quota); n < x.quota && alone {
			t.Errorf("a policy of %s and a limit of %d", quota, x.quota)
		}
	case "x":
		x.quota, x.left, x.reset = number("X-RateLimit-Limit"), number("X-RateLimit-Remaining"), number("X-RateLimit-Reset")
	}
	return x
}
