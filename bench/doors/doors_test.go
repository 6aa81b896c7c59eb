package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/rules"
)

// Scripts read the last line: its form is a promise.
func TestSummaryLine(t *testing.T) {
	s := summary{resp: [3]float64{0.9, 1.2, 2}, resp32: 1.41, http: 0.421}
	const want = "bench-doors: resp 0.9/1.2/2.0x resp32 1.4M http 0.42x"
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
		if (err != nil) != (want != "") || !regexp.MustCompile(`^`+want+`bench-doors: .*\n$`).MatchString(out.String()) {
			t.Errorf("%+v: %v\n%s", s, err, &out)
		}
	}
	f(summary{[3]float64{0.85, 1.05, 1.6}, 1, 0.38}, "")
	f(summary{[3]float64{0.84, 1.05, 1.6}, 1, 0.38}, `missed: resp with a pipeline of 1 is 0\.84x, the bar is at least 0\.85x\n`)
	f(summary{[3]float64{0.85, 1.04, 1.6}, 1, 0.38}, `missed: resp with a pipeline of 16 is 1\.04x, the bar is at least 1\.05x\n`)
	f(summary{[3]float64{0.85, 1.05, 1.59}, 1, 0.38}, `missed: resp with a pipeline of 64 is 1\.59x, the bar is at least 1\.6x\n`)
	f(summary{[3]float64{0.85, 1.05, 1.6}, 0.99, 0.38}, `missed: resp32 is 0\.99M, the bar is at least 1M\n`)
	f(summary{[3]float64{0.85, 1.05, 1.6}, 1, 0.37}, `missed: http is 0\.37x, the bar is at least 0\.38x\n`)
}

func TestCommandsAsClientsSendThem(t *testing.T) {
	if got := string(throttle.append(nil, "k")); got != "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$5\r\n99999\r\n$6\r\n100000\r\n$5\r\n86400\r\n" {
		t.Errorf("%q", got)
	}
	for _, depth := range []int{1, 16, 32, 64} {
		all := incr.batches(depth)
		if len(all) != draws/depth || bytes.Count(all[0], []byte("INCR")) != depth {
			t.Errorf("%d batches, the first is %q", len(all), all[0])
		}
	}
}

func TestRepliesAreLookedAt(t *testing.T) {
	f := func(c respCommand, replies string, depth int, whole bool, wrong int) {
		t.Helper()
		if got := c.whole([]byte(replies), depth); got != whole {
			t.Errorf("%q: whole is %t", replies, got)
		}
		if got := c.wrong([]byte(replies), depth); whole && got != wrong {
			t.Errorf("%q: %d wrong, want %d", replies, got, wrong)
		}
	}
	const yes, no = "*5\r\n:0\r\n:100000\r\n:5\r\n:-1\r\n:1\r\n", "*5\r\n:1\r\n:100000\r\n:0\r\n:1\r\n:1\r\n"
	f(incr, ":1\r\n:2\r\n", 2, true, 0)
	f(incr, ":1\r\n", 2, false, 0)
	f(incr, ":1\r\n-ERR no\r\n", 2, true, 1)
	f(incr, ":1\r\n:2\r\n:3\r\n", 2, true, 1)
	f(throttle, yes+yes, 2, true, 0)
	f(throttle, yes+yes[:9], 2, false, 0)
	f(throttle, yes+no, 2, true, 1)
}

// The load generator gets every reply, also in pieces, and counts the wrong ones.
func TestDrive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerIncr(c)
		}
	}()
	for _, depth := range []int{1, 16} {
		got, err := incr.drive(t.Context(), l.Addr().String(), depth, 100*time.Millisecond)
		if err != nil || got.replies == 0 || got.replies%int64(depth) != 0 || got.wrong != got.replies/int64(depth) || got.took < 100*time.Millisecond || got.p99 <= 0 {
			t.Errorf("%d: %+v, %v", depth, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := incr.drive(ctx, l.Addr().String(), 1, time.Hour); err == nil {
		t.Error("it goes on when it is told to stop")
	}
	l.Close()
	if _, err := incr.drive(t.Context(), l.Addr().String(), 1, time.Second); err == nil {
		t.Error("it asks where nobody listens")
	}
}

// answerIncr answers the commands of one read in two pieces, the first command of each wrong.
func answerIncr(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		reply := "-ERR\r\n" + strings.Repeat(":1\r\n", bytes.Count(buf[:n], []byte("INCR"))-1)
		for _, part := range []string{reply[:3], reply[3:]} {
			if _, err := io.WriteString(c, part); err != nil {
				return
			}
		}
	}
}

func TestRulesLoad(t *testing.T) {
	if _, err := rules.Parse("rules.yaml", []byte(rulesText), rules.Config{}); err != nil {
		t.Error(err)
	}
}

// The ratio is that of the median round, not of the medians.
func TestSummaryAndTables(t *testing.T) {
	var es entrants
	for i, depth := range []int{1, 16, 64, 32} {
		redis := &entrant{name: "redis", race: "resp", depth: depth, rates: []float64{10, 20, 40}, micros: []float64{1}, p99: []float64{1}}
		door := &entrant{name: "door", race: "resp", depth: depth, rival: redis, rates: []float64{10e6, 20e6 * float64(i+1), 80e6}, micros: []float64{1}, p99: []float64{1}}
		es = append(es, redis, door)
	}
	nginx := &entrant{name: "nginx", race: "http", rates: []float64{100, 100, 100}}
	es = append(es, nginx, &entrant{name: checkName, race: "http", rival: nginx, rates: []float64{40, 50, 60}},
		&entrant{name: "auth", race: "http", rival: nginx, rates: []float64{1, 1, 1}})
	s := es.summary()
	if s.resp != [3]float64{1e6, 2e6, 2e6} || s.resp32 != 80 || s.http != 0.5 {
		t.Errorf("%+v", s)
	}
	r := report.New(time.Now())
	r.Tables = es.tables(time.Second)
	var out strings.Builder
	r.WriteText(&out)
	for _, want := range []string{`nginx +100 +0\.00`, `POST /v1/check +50 +0\.50x`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}
