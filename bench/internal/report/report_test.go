package report

import (
	"strings"
	"testing"
	"time"
)

func TestMarkdown(t *testing.T) {
	table := Table{Title: "Proxies", Note: "All at once.", Head: []string{"who", "rate"}}
	table.Add("nginx", "1,000")
	r := Report{
		machine: "a machine", date: time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC),
		Notes: []string{"nginx 1.22"}, Tables: []Table{table}, LastLine: "bench: 1x",
	}
	const want = "a machine, 15 November 2026.\n\n```\nbench: 1x\n```\n\n- nginx 1.22\n\n### Proxies\n\nAll at once.\n\n| who | rate |\n|---|---:|\n| nginx | 1,000 |\n"
	var b strings.Builder
	if r.writeMarkdown(&b); b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}

func TestText(t *testing.T) {
	table := Table{Title: "Proxies", Head: []string{"who", "rate"}}
	table.Add("nginx", "1,000")
	r := Report{machine: "a machine", took: 1499 * time.Millisecond, Notes: []string{"nginx 1.22"}, Tables: []Table{table}, LastLine: "bench: 1x"}
	const want = "a machine\n  nginx 1.22\n\nProxies\n  who    rate\n  nginx  1,000\n\n1s in all\n"
	var b strings.Builder
	if r.WriteText(&b); b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", &b, want)
	}
}

func TestMedian(t *testing.T) {
	f := func(want float64, figures ...float64) {
		t.Helper()
		if got := Median(figures); got != want {
			t.Errorf("median of %v is %v, want %v", figures, got, want)
		}
	}
	f(0)
	f(3, 3)
	f(2, 9, 1, 2)
	f(2.5, 9, 1, 2, 3)
}

func TestThousands(t *testing.T) {
	f := func(n int64, want string) {
		t.Helper()
		if got := Thousands(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
	f(7, "7")
	f(1000, "1,000")
	f(1234567, "1,234,567")
	f(-123456, "-123,456")
}
