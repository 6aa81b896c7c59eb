package rules

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func TestLoadTellsEverything(t *testing.T) {
	_, err := Parse("rules.yaml", []byte("version: 1\nrules:\n  - { name: api, per: ip, limit: 5/minute }\n  - { name: api, per: nobody, limits: 5/minute }\n"), Config{})
	var load *LoadError
	if !errors.As(err, &load) || len(load.Problems) < 3 {
		t.Fatalf("the error is %v", err)
	}
	for _, want := range []string{"load rules rules.yaml:\n", "rules.yaml:3:27: error: ", "did you mean `limits`?", "rules.yaml:4:23: error: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	if _, err := Load("testdata/none.yaml", Config{}); !errors.As(err, &load) || !strings.Contains(err.Error(), "testdata/none.yaml") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestNeeds(t *testing.T) {
	set := parse(t, `
instances: 3
rules:
  - { name: plain, per: ip, limits: 5/minute }
  - name: all
    per: ip
    limits: { rate: 50/second, algorithm: leaky_bucket }
    queue: { places: 100, max_wait: 2s }
    defer: { keep: 24h, places: 100000 }
    concurrency: { slots: 3, lease: 30s }
    count: { status: 401 }
    cost: { else: 5, settle: response.header.X-Cost }
    consistency: leased
    on_partition: share
  - { name: off, per: ip, concurrency: { slots: 3, lease: 30s }, mode: disabled }
  - { name: branch, per: ip, limits: 5/minute, for: [{ when: { method: GET }, concurrency: { slots: 3, lease: 30s } }] }
`, Config{})
	var got []string
	for _, n := range set.Needs() {
		got = append(got, strings.TrimSpace(n.Rule+" "+n.Field+" "+n.Value))
	}
	const want = "all queue, all defer, all concurrency, all count, all settle, all consistency leased, all on_partition share, branch concurrency"
	if strings.Join(got, ", ") != want {
		t.Errorf("needs %s\nwant  %s", strings.Join(got, ", "), want)
	}
	h, ok := set.Handling("all")
	if !ok || *h.Defer != (tidegate.Defer{Keep: 24 * time.Hour, Places: 100000, PerKey: 10000, MaxBody: 1 << 20}) || h.Consistency != "leased" || h.OnPartition != "share" {
		t.Errorf("%+v", h)
	}
	if h, ok := set.Handling("plain"); !ok || h != (Handling{}) {
		t.Errorf("plain: %+v", h)
	}
	if _, ok := set.Handling("nobody"); ok {
		t.Error("there is no rule nobody")
	}
	if set.Instances() != 3 || strings.Join(set.Rules(), " ") != "plain all off branch" {
		t.Errorf("%d instances, rules %v", set.Instances(), set.Rules())
	}
}

// Requests are matched by one set or the other while they change.
func TestLiveSwapsWhole(t *testing.T) {
	sets := make([]*Set, 2)
	for i := range sets {
		sets[i] = parse(t, fmt.Sprintf("rules: [{ name: a, per: ip, limits: %d/minute }, { name: b, per: [ip, method], limits: %d/minute }]", i+1, i+1), Config{})
	}
	live := NewLive(sets[0])
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			var dst []tidegate.Check
			for range 2000 {
				dst = live.Match(request("GET /", "ip", "192.0.2.1"), dst[:0])
				if len(dst) != 2 || dst[0].Limit.Events != dst[1].Limit.Events {
					t.Errorf("half of one set: %s", show(dst))
					return
				}
			}
		})
	}
	for i := range 500 {
		if was := live.Swap(sets[(i+1)%2]); was != sets[i%2] {
			t.Error("another set was in force")
		}
	}
	wait.Wait()
	if live.Set() != sets[0] {
		t.Error("the last set is not in force")
	}
}

// A list of a hundred thousand values costs a lookup.
func BenchmarkLongList(b *testing.B) {
	var list strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&list, "%d.%d.%d.0/24\n", 1+i>>16, i>>8&255, i&255)
	}
	set, err := Parse("rules.yaml", []byte("version: 1\nlists: { banned: file b.txt }\nrules: [{ name: banned, when: { ip: in banned }, deny: true }]\n"),
		Config{ReadFile: func(string) ([]byte, error) { return []byte(list.String()), nil }})
	if err != nil {
		b.Fatal(err)
	}
	r := &tidegate.Request{Method: "GET", Path: "/", Values: few{}}
	var dst []tidegate.Check
	for b.Loop() {
		dst = set.Match(r, dst[:0])
	}
}

func TestReadsHeader(t *testing.T) {
	set := parse(t, `
identify: { tenant: header X-Tenant, key: [client header x-api-key, jwt.sub], seat: cookie seat }
rules:
  - { name: a, per: key, limits: 1/minute }
  - { name: b, per: [tenant, seat], limits: 1/minute }
`, Config{})
	for name, want := range map[string]bool{"X-Tenant": true, "X-Api-Key": true, "Authorization": true, "Cookie": true, "X-Sum": false, "Host": false} {
		if got := set.ReadsHeader(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
