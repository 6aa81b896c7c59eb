package deferq

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What a request has cost in truth, its answer tells, and the limit of the deferring rule is settled by it: in a header, or
// in a body, however long that is.
func TestAttemptsAreSettled(t *testing.T) {
	for source, text := range map[string]string{
		"response.header.X-Cost": "{}",
		"response.body.cost":     `{"cost":5}`,
		"response.body.usage.n":  `{"text":"` + strings.Repeat("x", maxResult+maxDiscard+1000) + `","usage":{"n":5}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, strings.Replace(testRules, "    limits: 2/second\n", "    limits: 10/second\n    cost: { else: 1, settle: "+source+" }\n", 1))
			defer b.close()
			b.accept("ann", 0, 10) // they pass
			b.setSend(costs(source, text))
			b.accept("ann", 10, 10)
			time.Sleep(30 * time.Second)
			got := b.arrivals()
			if len(got) != 20 {
				t.Fatalf("%s: %d came, want 20", source, len(got))
			}
			if took := got[19].at.Sub(got[10].at); took < 3*time.Second {
				t.Errorf("%s: ten that cost 5 each were sent within %s, and the limit is 10 a second", source, took)
			}
		})
	}
}

// costs answers that a request has cost 5.
func costs(source, text string) func(*http.Request) (*http.Response, bool, error) {
	return func(*http.Request) (*http.Response, bool, error) {
		res := answered(200, text)
		res.Header.Set("Content-Type", "application/json")
		if name, ok := strings.CutPrefix(source, "response.header."); ok {
			res.Header.Set(name, "5")
		}
		return res, true, nil
	}
}
