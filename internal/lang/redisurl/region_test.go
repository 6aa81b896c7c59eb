package redisurl

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckRegions(t *testing.T) {
	us, ap := Region{"us", "redis://h2"}, Region{"ap-1", "redis-sentinel://x,y/mymaster"}
	f := func(want, own string, others ...Region) {
		t.Helper()
		err := CheckRegions(Region{own, "redis://h1"}, others)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q and %v: %v, want %q", own, others, err, want)
		}
	}
	f("", "")
	f("", "eu", us, ap)
	f("", "eu", Region{Name: "us"}) // somebody else tells it
	f("has no name", "", us)
	f("the only one", "eu")
	f("two regions are called eu", "eu", us, Region{Name: "eu"})
	f("two regions are called us", "eu", us, us)
	f("regions eu and us have the same Redis", "eu", Region{"us", "redis://h1"})
	f("regions eu and us have the same Redis", "eu", Region{"us", "redis://ann:secret@h1:6379/0"})
	f("regions us and ca have the same Redis", "eu", us, ap, Region{"ca", "rediss://h2:6379"})
	f("regions ap-1 and ca have the same Redis", "eu", us, ap, Region{"ca", ap.URL})
	f("", "eu", us, Region{"ca", "redis://h2/1"}, Region{"sa", "redis://h2?prefix=sa"}, Region{Name: "x"}, Region{Name: "y"})
	f("letters, digits", "eu", Region{Name: "u s"})
	f("letters, digits", "eu", Region{Name: "ü"})
	f("letters, digits", "eu", Region{Name: ""})
	f("letters, digits", strings.Repeat("e", 33), us)
	f("region us: it is a cluster", "eu", Region{"us", "redis-cluster://h2"})
	f("region us: ", "eu", Region{"us", "http://h2"})
	var many []Region
	for i := range MaxRegions {
		many = append(many, Region{Name: fmt.Sprint("r", i)})
	}
	f("", "eu", many[1:]...)
	f("at most 16", "eu", many...)
	if err := CheckRegions(Region{Name: "eu"}, []Region{{"us", "http://ann:s3cret@h2"}}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}
