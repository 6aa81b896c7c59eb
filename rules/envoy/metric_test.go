package envoy

import (
	"fmt"
	"strings"
	"testing"
)

func TestMetric(t *testing.T) {
	stars, shop := load(t, "stars.yaml").Domain("stars"), load(t, "basic.yaml").Domain("shop")
	f := func(d *Domain, descriptor, want string) {
		t.Helper()
		e := entries(descriptor)
		if got := d.Find(e).Metric(e); got != want {
			t.Errorf("%s: got %s, want %s", descriptor, got, want)
		}
	}
	f(shop, "plan=silver", "shop.plan")
	f(shop, "plan=gold", "shop.plan_gold")
	f(shop, "tenant=acme, path=/", "shop.tenant_acme.path")
	f(shop, "told=a value", "shop.told_a value")
	f(stars, "wild=foo1", "stars.wild_foo*")
	f(stars, "files=files/a.pdf", "stars.files_files/*")
	f(stars, "route=/api/x, method=GET", "stars.route_/api/*.method_GET")
	f(stars, "path=path/x, path=a.pdf, user=ann", "stars.path_path/*.path_a.pdf.user_ann")
	f(stars, "user=alice, action=readfile, resource=r", "stars.user_alice.action_readfile.resource")
}

// A caller that invents values cannot make metrics without end.
func TestMetricsAreBounded(t *testing.T) {
	d := load(t, "basic.yaml").Domain("shop")
	names := make(map[string]bool)
	for i := range 5 * MaxMetrics {
		e := []Entry{{"told", fmt.Sprint(i)}}
		names[d.Find(e).Metric(e)] = true
		r, err := d.Override(5, Minute)
		if err != nil {
			t.Fatal(err)
		}
		names[r.Metric(e)] = true
	}
	if len(names) > MaxMetrics+2 {
		t.Errorf("there are %d names", len(names))
	}
	e := entries("told=0")
	if got := d.Find(e).Metric(e); got != "shop.told_0" {
		t.Errorf("a name made early is %s now", got)
	}
	e = entries("told=a late one")
	if got := d.Find(e).Metric(e); got != "shop.told" {
		t.Errorf("a late name is %s", got)
	}
}

// Nor can one make long ones.
func TestMetricNamesAreBounded(t *testing.T) {
	d := load(t, "basic.yaml").Domain("shop")
	told := d.Find(entries("told=x"))
	override, err := d.Override(5, Minute)
	if err != nil {
		t.Fatal(err)
	}
	longest := maxMetricName - len("shop.told_")
	for size, fits := range map[int]bool{1: true, 300: true, longest - 1: true, longest: true, longest + 1: false, 32 << 10: false} {
		value := strings.Repeat("x", size)
		for _, rule := range []*Rule{told, override} {
			want := "shop.told_" + value
			if !fits {
				want = rule.Path
			}
			if got := rule.Metric([]Entry{{"told", value}}); got != want {
				t.Errorf("a value of %d bytes: a name of %d", size, len(got))
			}
		}
	}
	many := make([]Entry, 64)
	for i := range many {
		many[i] = Entry{"told", strings.Repeat("x", 4<<10)}
	}
	if got := override.Metric(many); got != override.Path {
		t.Errorf("many entries: a name of %d bytes", len(got))
	}
}
