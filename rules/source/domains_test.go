package source

import (
	"path/filepath"
	"strconv"
	"testing"

	"tidegate.dev/tidegate/rules/envoy"
)

// domainFile is a configuration of envoyproxy/ratelimit whose only limit is n.
func domainFile(domain string, n int) string {
	return "domain: " + domain + "\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: " + strconv.Itoa(n) + " } }]\n"
}

// perUser is the limit of a domain that is in force, 0 if there is none.
func (w *watched) perUser(domain string) int {
	if r := w.Live().Set().Domains().Domain(domain).Find([]envoy.Entry{{Key: "user", Value: "ann"}}); r != nil {
		return int(r.RequestsPerUnit)
	}
	return 0
}

// Domain files are followed like rule files: a new one makes its domain known, and a bad one
// leaves everything as it was, the rules included, and is counted.
func TestDomainFiles(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.yaml"), limit(10))
		w := start(t, dir, p)
		if w.Live().Set().Domains() != nil {
			t.Error("there are domains already")
		}
		write(t, filepath.Join(dir, "b.yaml"), domainFile("shop", 5))
		eventually(t, "the new domain", func() bool { return w.perUser("shop") == 5 })
		replace(t, filepath.Join(dir, "b.yaml"), domainFile("shop", 6))
		eventually(t, "the changed limit", func() bool { return w.perUser("shop") == 6 })

		write(t, filepath.Join(dir, "c.yaml"), domainFile("shop", 7)) // the same domain
		w.wantsFailure(10)
		if n := w.perUser("shop"); n != 6 {
			t.Errorf("after a failure the limit is %d", n)
		}
		s := w.Status()
		if s.Failed == 0 || len(s.Problems) != 1 || s.Problems[0].Line != 1 {
			t.Errorf("the status is %+v", s)
		}
		replace(t, filepath.Join(dir, "a.yaml"), limit(20)) // good, beside a bad one
		eventually(t, "another failure", func() bool { return w.Status().Failed > s.Failed })
		w.wantsFailure(10)
		replace(t, filepath.Join(dir, "c.yaml"), domainFile("other", 8))
		w.wants(20)
		if a, b := w.perUser("shop"), w.perUser("other"); a != 6 || b != 8 {
			t.Errorf("the limits are %d and %d", a, b)
		}
		if got := w.Status().Reloads; got <= s.Reloads {
			t.Errorf("%d reloads, %d before", got, s.Reloads)
		}
	})
}
