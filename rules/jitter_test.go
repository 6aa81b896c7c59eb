package rules

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// herd is clients that are refused in one aligned window, and come back when an answer
// tells them to.
type herd struct {
	limits string // of the rule
	window time.Duration
	start  time.Time
	most   time.Duration // that they are spread over
}

const herdSize = 1000

// back is when a client that was refused at now comes back, by one part of the answer.
var back = map[string]func(now time.Time, w *httptest.ResponseRecorder) time.Time{
	"Retry-After":             inSeconds(func(w *httptest.ResponseRecorder) string { return w.Header().Get("Retry-After") }),
	"X-RateLimit-Retry-After": inSeconds(func(w *httptest.ResponseRecorder) string { return w.Header().Get("X-RateLimit-Retry-After") }),
	"RateLimit": inSeconds(func(w *httptest.ResponseRecorder) string {
		_, after, _ := strings.Cut(w.Header().Get("RateLimit"), ";t=")
		return after
	}),
	"body":              inSeconds(func(w *httptest.ResponseRecorder) string { return w.Body.String() }),
	"RateLimit-Reset":   byReset("RateLimit-Reset"),
	"X-RateLimit-Reset": byReset("X-RateLimit-Reset"),
}

func inSeconds(text func(*httptest.ResponseRecorder) string) func(time.Time, *httptest.ResponseRecorder) time.Time {
	return func(now time.Time, w *httptest.ResponseRecorder) time.Time {
		n, err := strconv.Atoi(text(w))
		if err != nil {
			panic(err)
		}
		return now.Add(time.Duration(n) * time.Second)
	}
}

// byReset reads a delta, or Unix time.
func byReset(name string) func(time.Time, *httptest.ResponseRecorder) time.Time {
	delta := inSeconds(func(w *httptest.ResponseRecorder) string { return w.Header().Get(name) })
	return func(now time.Time, w *httptest.ResponseRecorder) time.Time {
		if n, err := strconv.ParseInt(w.Header().Get(name), 10, 64); err == nil && n > 9e8 {
			return time.Unix(n, 0)
		}
		return delta(now, w)
	}
}

// comeBack plays the herd, in a bubble of synctest: every client uses its limit up at a moment of its
// own in the window, is refused, waits as told and asks again. It returns how long after
// the end of the window each of them came; all must be admitted.
func (c herd) comeBack(t *testing.T, headers, told string) []time.Duration {
	t.Helper()
	src := "version: 1\nidentify: { user: client header X-User }\nrespond: { body: \"{retry_after}\" }\nheaders: { dialect: [draft11, draft6, x]" + headers + " }\n" +
		"rules:\n  - { name: api, per: user, " + c.limits + " }\n"
	set, err := Parse("rules.yaml", []byte(src), Config{})
	if err != nil {
		t.Fatal(err)
	}
	exact := time.Duration(0)
	gate := tidegate.NewGate(set, memory.New()).Observe(func(_ *tidegate.Request, _ []tidegate.Check, d tidegate.Decision) { exact = d.RetryAfter })
	h := httplimit.Gate(gate)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ask := func(client int) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-User", strconv.Itoa(client))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	type visit struct {
		client int
		at     time.Time
	}
	end := c.start.Add(c.window)
	var returns []visit
	for client := range herdSize {
		time.Sleep(time.Until(c.start.Add(c.window * time.Duration(client) / herdSize)))
		now, w := time.Now(), ask(client)
		for w.Code == http.StatusOK {
			w = ask(client)
		}
		if !now.Add(exact).Equal(end) {
			t.Fatalf("client %d is refused for %s at %s: the Decision is not exact", client, exact, now)
		}
		returns = append(returns, visit{client, back[told](now, w)})
	}
	slices.SortFunc(returns, func(a, b visit) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	var late []time.Duration
	for _, v := range returns {
		time.Sleep(time.Until(v.at))
		if w := ask(v.client); w.Code != http.StatusOK || v.at.Before(end) {
			t.Fatalf("client %d comes back %s after the end of the window, and is answered %d", v.client, v.at.Sub(end), w.Code)
		}
		late = append(late, v.at.Sub(end))
	}
	return late
}

// A thousand clients that were refused in one window come back spread over its share of
// the next, none of them early, whichever part of the answer they go by.
func TestRefusedClientsComeBackSpread(t *testing.T) {
	testdep.SkipUnderRace(t)
	day := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when bubbles begin
	herds := map[string]herd{
		"minute": {"limits: { rate: 2/minute, algorithm: fixed_window }", time.Minute, day, 30 * time.Second},
		"hour":   {"limits: { rate: 1/hour, algorithm: fixed_window }", time.Hour, day, 30 * time.Minute},
		"soft":   {"limits: { rate: 2/10m, algorithm: fixed_window }, over: { soft: 50% }", 10 * time.Minute, day, 5 * time.Minute},
		"tight":  {"limits: [100/second, { rate: 2/10m, algorithm: fixed_window }]", 10 * time.Minute, day, 5 * time.Minute},
		"day":    {"quota: 2/day", 24 * time.Hour, day, httplimit.MostRetryJitter},
		"month":  {"quota: { amount: 2/month, zone: Asia/Seoul }", 29 * 24 * time.Hour, time.Date(2000, 1, 31, 15, 0, 0, 0, time.UTC), httplimit.MostRetryJitter},
	}
	for name, c := range herds {
		for told := range back {
			for _, reset := range []string{"delta", "epoch"} {
				if reset == "epoch" && !strings.HasSuffix(told, "Reset") {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					late := c.comeBack(t, ", retry_jitter: 50%, reset: "+reset, told)
					checkSpread(t, fmt.Sprintf("%s, by %s, %s", name, told, reset), late, c.most)
				})
			}
		}
	}
}

// checkSpread looks at tenths of the time: each has its share, whole seconds being rounded
// up. The bounds are six standard deviations away.
func checkSpread(t *testing.T, say string, late []time.Duration, most time.Duration) {
	t.Helper()
	var tenths [10]int
	for _, d := range late {
		if d > most+time.Second {
			t.Errorf("%s: a client comes %s late, want at most %s", say, d, most)
		}
		tenths[min(int(d*10/most), 9)]++
	}
	for _, n := range tenths {
		if n < 25 || n > 180 {
			t.Errorf("%s: %v come back in the tenths of %s", say, tenths, most)
			return
		}
	}
}

// Without jitter they all come in the same second, so that the test above can fail.
func TestRefusedClientsComeBackTogetherWithoutJitter(t *testing.T) {
	testdep.SkipUnderRace(t)
	c := herd{"limits: { rate: 2/minute, algorithm: fixed_window }", time.Minute, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), 0}
	play := func(headers string) (late []time.Duration) {
		synctest.Test(t, func(t *testing.T) { late = c.comeBack(t, headers, "Retry-After") })
		return late
	}
	for _, headers := range []string{"", ", retry_jitter: 0%"} {
		if late := slices.Max(play(headers)); late >= time.Second {
			t.Errorf("%q: one comes %s after the others", headers, late)
		}
	}
	// Ten percent of a minute are six seconds.
	perSecond := map[int]int{}
	for _, d := range play(", retry_jitter: 10%") {
		perSecond[int(d.Seconds())]++
	}
	for second, n := range perSecond {
		if second > 6 || n > herdSize*3/10 {
			t.Errorf("%d come back in second %d: %v", n, second, perSecond)
		}
	}
}
