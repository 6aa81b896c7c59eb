package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/wrk"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules"
)

// Scripts read the last line: its form is a promise.
func TestSummaryLine(t *testing.T) {
	s := summary{nginx: 0.562, caddy: 2.312, denyCaddy: 2.58, limitCost: 0.61, log: 0.968, many: 0.851}
	const want = "bench-gateway: nginx 0.56x caddy 2.31x deny-caddy 2.6x limit-cost 0.6us log 0.97x conns5000 0.85x"
	var out strings.Builder
	if err := rig.Conclude(&out, true, s, s.missed()); err != nil || out.String() != want+"\n" {
		t.Errorf("got  %s, %v\nwant %s", &out, err, want)
	}
}

func TestMissedNamesTheBar(t *testing.T) {
	f := func(s summary, want string) {
		t.Helper()
		var out strings.Builder
		err := rig.Conclude(&out, true, s, s.missed())
		if (err != nil) != (want != "") || !regexp.MustCompile(`^`+want+`bench-gateway: .*\n$`).MatchString(out.String()) {
			t.Errorf("%+v: %v\n%s", s, err, &out)
		}
		if rig.Conclude(&out, false, s, s.missed()) != nil {
			t.Errorf("%+v: fails unchecked", s)
		}
	}
	f(summary{0.55, 2.2, 2.5, 1, 0.95, 0.8}, "")
	f(summary{0.549, 2.2, 2.5, 1, 0.95, 0.8}, `missed: nginx is 0\.549x, the bar is at least 0\.55x\n`)
	f(summary{0.55, 2.19, 2.5, 1, 0.95, 0.8}, `missed: caddy is 2\.19x, the bar is at least 2\.2x\n`)
	f(summary{0.55, 2.2, 2.4, 1, 0.95, 0.8}, `missed: deny-caddy is 2\.4x, the bar is at least 2\.5x\n`)
	f(summary{0.55, 2.2, 2.5, 1.04, 0.95, 0.8}, `missed: limit-cost is 1\.04us, the bar is at most 1us\n`)
	f(summary{0.55, 2.2, 2.5, 1, 0.94, 0.8}, `missed: log is 0\.94x, the bar is at least 0\.95x\n`)
	f(summary{0.55, 2.2, 2.5, 1, 0.95, 0.79}, `missed: conns5000 is 0\.79x, the bar is at least 0\.8x\n`)
}

// The ratio is that of the median round, not of the medians.
func TestAgainst(t *testing.T) {
	es := entrants{{rates: []float64{10, 20, 40}}, {rates: []float64{10, 10, 80}}}
	if got := es.against(1, 0); got != 1 {
		t.Errorf("got %v, want 1", got)
	}
}

func TestWrongAnswers(t *testing.T) {
	f := func(name string, c wrk.Tally, status int, served, want int64) {
		t.Helper()
		if got := wrong(c, status, served, wrk.Connections); got != want {
			t.Errorf("%s: %d wrong, want %d", name, got, want)
		}
	}
	f("all pass", wrk.Tally{Requests: 100}, http.StatusOK, 100, 0)
	f("some are on their way at the end", wrk.Tally{Requests: 100}, http.StatusOK, 164, 0)
	f("more than can be on their way", wrk.Tally{Requests: 100}, http.StatusOK, 165, 1)
	f("some were not answered by the upstream", wrk.Tally{Requests: 100}, http.StatusOK, 97, 3)
	f("some are refused", wrk.Tally{Requests: 100, Status: 5}, http.StatusOK, 95, 5)
	f("some are lost", wrk.Tally{Requests: 100, Socket: 2}, http.StatusOK, 100, 2)
	f("all are refused", wrk.Tally{Requests: 100, Status: 100}, http.StatusTooManyRequests, 0, 0)
	f("one passes", wrk.Tally{Requests: 100, Status: 99}, http.StatusTooManyRequests, 1, 2)
	f("refused, and still passed on", wrk.Tally{Requests: 100, Status: 100}, http.StatusTooManyRequests, 7, 7)
}

// What arrives late is waited for, so that it is not taken for the next heat's.
func TestSettled(t *testing.T) {
	f := func(name string, served func(asked int64) (int64, error), want int64, wantErr string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			asked := int64(0)
			got, err := settled(t.Context(), func(context.Context) (int64, error) {
				asked++
				return served(asked)
			})
			if got != want || (err != nil) != (wantErr != "") || err != nil && !strings.Contains(err.Error(), wantErr) {
				t.Errorf("%s: %d, %v, want %d, %q", name, got, err, want, wantErr)
			}
		})
	}
	f("nothing is late", func(int64) (int64, error) { return 7, nil }, 7, "")
	f("three are late", func(asked int64) (int64, error) { return min(asked, 4), nil }, 4, "")
	f("it never ends", func(asked int64) (int64, error) { return asked, nil }, 0, "still arrive")
	f("it cannot be asked", func(int64) (int64, error) { return 0, errors.New("gone") }, 0, "gone")
	f("it is gone later", func(asked int64) (int64, error) {
		if asked > 2 {
			return 0, errors.New("gone")
		}
		return asked, nil
	}, 0, "gone")
}

// startTestUpstream returns the address of one that listens.
func startTestUpstream(t *testing.T) string {
	t.Helper()
	address, err := daemon.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = serveUpstream(t.Context(), address) }()
	if !testdep.Await(time.Minute, func() bool { _, err = servedBy(t.Context(), address); return err == nil }) {
		t.Fatal(err)
	}
	return address
}

// The upstream counts what it answers, not who asks for the count.
func TestUpstream(t *testing.T) {
	address := startTestUpstream(t)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	up := &server{&daemon.Server{Name: "the upstream", Address: address}}
	if err := up.probe(t.Context(), load{path: bigPath}, http.StatusOK); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := up.probe(t.Context(), usual, http.StatusOK); err != nil {
			t.Error(err)
		}
	}
	if err := up.probe(t.Context(), usual, http.StatusTooManyRequests); err == nil {
		t.Error("a 200 is taken for a 429")
	}
	if n, err := servedBy(t.Context(), address); err != nil || n != 4 {
		t.Errorf("served %d, %v, want 4", n, err)
	}
	// A head that comes in two parts, and two at once.
	for _, part := range []string{"GET /a HTTP/1.1\r\nHost:", " x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"} {
		if _, err := conn.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // the parts may come apart, and need not
	}
	testdep.Eventually(t, "two more requests are counted as two", func() bool {
		n, err := servedBy(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		return n == 6
	})
}

func TestRulesLoad(t *testing.T) {
	for _, q := range []quota{plenty, scarce} {
		if _, err := rules.Parse("rules.yaml", []byte(rulesText(q)), rules.Config{}); err != nil {
			t.Error(err)
		}
	}
}

func TestTables(t *testing.T) {
	var es entrants
	for i, c := range append(slices.Clip(contestants), others()...) {
		rate := float64(1000 * (i + 1))
		es = append(es, &entrant{contestant: c, rates: []float64{rate}, micros: []float64{float64(i)}, p99: []float64{1}})
	}
	r := report.New(time.Now())
	r.Tables = []report.Table{raceTable(es, 5*time.Second), loadsTable(es), delayTable(es, 2500, []delay{{[]float64{1}, []float64{2}, []float64{3}}, {[]float64{1}, []float64{2.5}, []float64{4}}}), costTable(es, cost{bare: []float64{300}, limited: []float64{900}, allocs: []float64{1}})}
	var out strings.Builder
	r.WriteText(&out)
	for _, want := range []string{
		`nginx, proxy +200 +1,000 +1\.00x +0\.50x +0\.0 +1\.0 +0\n`,
		`Tidegate, limit and log on +200 +4,000 +4\.00x +2\.00x +3\.0 +1\.0 +0\n`,
		`Tidegate, limit on +200 +5,000 +5\.00x +2\.50x +4\.0 +1\.0 +0\n`,
		`Tidegate, refusing +429 +7,000 +2\.33x +6\.0 +1\.0 +0\n`,
		`5,000 connections +10,000 +11,000 +1\.10x +9\.0 +10\.0 +1\.0 +1\.0 +0\n`,
		`HTTP/2 +18,000 +19,000 +1\.06x +17\.0 +18\.0 +0\n`,
		`Tidegate, limit on +1\.00 +2\.50 +4\.00\n`,
		`in process, ns +300 +900 +600 +1\.0\n`,
		`over loopback, µs +5\.0 +4\.0 +-1\.0`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}

// Rounds in which neighbours had the caches say nothing of the limit.
func TestAddedIsThatOfQuietRounds(t *testing.T) {
	c := cost{
		bare:    []float64{200, 390, 202, 410, 400, 380, 395, 405},
		limited: []float64{900, 1900, 904, 2100, 2000, 1800, 1850, 2050},
	}
	if got := c.added(); got < 700 || got > 702 {
		t.Errorf("%v ns added, want those of the rounds with 200 and 202 without the limit", got)
	}
}

func TestReadH2load(t *testing.T) {
	const output = `finished in 5.00s, 2000.00 req/s, 1.2MB/s
requests: 10064 total, 10064 started, 10000 done, 9990 succeeded, 10 failed, 3 errored, 1 timeout
status codes: 9990 2xx, 0 3xx, 6 4xx, 4 5xx
traffic: 1B (0) total
`
	got, err := readH2load([]byte(output))
	if want := (wrk.Tally{Requests: 10_000, Micros: 5_000_000, Status: 10, Socket: 4}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "finished in 5s, 0.00 req/s, 0B/s\nrequests: 1 total, 0 started, 0 done, 0 succeeded, 1 failed, 1 errored, 0 timeout\nstatus codes: 0 2xx, 0 3xx, 0 4xx, 0 5xx\n"} {
		if got, err := readH2load([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

// Every request that is due is sent and answered, and the upstream sees as many.
func TestOpenLoop(t *testing.T) {
	address := startTestUpstream(t)
	before, err := servedBy(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	all, err := openLoop{rate: 6400, lasts: 100 * time.Millisecond}.run(t.Context(), address)
	if err != nil || len(all) != 640 || !slices.IsSorted(all) {
		t.Errorf("%d answers, %v", len(all), err)
	}
	if after, err := servedBy(t.Context(), address); err != nil || after-before != 640 {
		t.Errorf("the upstream has served %d, %v", after-before, err)
	}
	var d delay
	d.add(all)
	if len(d.p999) != 1 || d.p999[0] < d.p99[0] || d.p99[0] < d.p50[0] || d.p50[0] <= 0 {
		t.Errorf("%+v", d)
	}
	if _, err := (openLoop{rate: 6400, lasts: time.Second}).run(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("nobody listens, and there is no error")
	}
}
