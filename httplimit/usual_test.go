package httplimit

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// The prepared body is the one that is made for a refusal, where it is used.
func FuzzUsualProblem(f *testing.F) {
	f.Add("burst", int64(15), "rs1_abc", 0, "", false, false, uint8(0))
	f.Add(`a"b</script>`, int64(1), "", 503, "", true, false, uint8(0))
	f.Add("; try again in 1 s.", int64(-1), `"`, 99, "Come later.", false, true, uint8(1))
	f.Add("caf\u00e9\xff\n", int64(1<<62), "\u2028", 429, "", false, false, uint8(2))
	f.Fuzz(func(t *testing.T, name string, retry int64, slip string, own int, message string, slots, never bool, role uint8) {
		spec := tidegate.Spec{Name: name, Events: 5, Period: time.Minute}
		if slots {
			spec.Algorithm = tidegate.Concurrency
		}
		terms := &tidegate.Terms{Answer: tidegate.Answer{Status: own, Message: message}}
		switch role % 3 {
		case 1:
			spec = tidegate.Spec{Name: name, Algorithm: tidegate.Deny}
		case 2:
			spec = tidegate.Spec{Name: name, Algorithm: tidegate.Deny}
			terms.Role = tidegate.Sheds
		}
		spec.Terms = terms
		limit, err := tidegate.NewLimit(spec)
		if err != nil {
			t.Skip(err)
		}
		p := newPolicy(limit, name)
		d := tidegate.Decision{Limit: limit, Never: never}
		status := Status(d)
		if usual := role%3 == 0 && message == "" && !never; p.isUsual(&d, status) != usual {
			t.Fatalf("usual is not %t", usual)
		} else if !usual {
			return
		}
		why := explain(&d, p, retry, status)
		why.Slip = slip
		if got, want := p.usual.appendJSON(nil, retry, slip), why.appendJSON(nil); string(got) != string(want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
}

func BenchmarkRefused(b *testing.B) {
	limit, known, o := tidegate.PerMinute(5), newPolicies(nil), Options{}
	d := tidegate.Decision{Limit: limit, RetryAfter: 14 * time.Hour}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	w := bare{http.Header{}}
	slip := []string{"rs1_0123456789012345678901234567890123456789012345678901234567890123456789"}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		w.header[SlipHeader] = slip
		o.refuse(w, r, &d, known.of(limit), &known)
	}
}
