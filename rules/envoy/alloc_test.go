package envoy

import (
	"runtime"
	"testing"
)

// What is done for each descriptor of a call allocates nothing.
func TestAllocations(t *testing.T) {
	stars, shop := load(t, "stars.yaml").Domain("stars"), load(t, "basic.yaml").Domain("shop")
	f := func(d *Domain, descriptor string) {
		t.Helper()
		e := entries(descriptor)
		room := make([]byte, 0, 1024)
		got := testing.AllocsPerRun(100, func() {
			r := d.Find(e)
			if r == nil {
				return
			}
			runtime.KeepAlive(r.AppendKey(room, e))
			runtime.KeepAlive(r.Metric(e))
			over, err := d.Override(5, Minute)
			if err != nil {
				t.Fatal(err)
			}
			runtime.KeepAlive(over.AppendKey(room, e))
			runtime.KeepAlive(over.Metric(e))
		})
		if got != 0 {
			t.Errorf("%s: %v allocations", descriptor, got)
		}
	}
	f(shop, "unknown=x")
	f(shop, "plan=silver")
	f(shop, "plan=gold")
	f(shop, "told=ann")
	f(shop, "tenant=acme, path=/a/long/path/that/has/to/be/hashed/because/it/is/longer/than/a/key/may/be")
	f(stars, "multi=foo123bar456baz")
	f(stars, "path=path/x, path=a.pdf, user=ann")
	f(stars, "user=alice, action=readfile, resource=r")
	e := entries("plan=silver")
	if got := testing.AllocsPerRun(100, func() { runtime.KeepAlive(shop.Find(e).Key(e)) }); got > 1 {
		t.Errorf("a key of its own takes %v allocations", got)
	}
}
