package rulefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tidegate.dev/tidegate"
)

// Nothing that somebody writes makes Parse panic, every problem can be shown,
// and what it finds nothing wrong with can be counted.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	o := Options{
		ReadFile: func(string) ([]byte, error) { return nil, errors.New("there are no files here") },
		Glob:     func(string) ([]string, error) { return nil, nil },
		Now:      today,
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		file, problems := Parse("rules.yaml", src, o)
		for _, p := range problems {
			if p.File == "" || p.Message == "" {
				t.Fatalf("a problem without place or message: %+v", p)
			}
		}
		if problems.HasErrors() {
			return
		}
		for _, r := range file.Rules {
			countable(t, r)
		}
	})
}

// The bounds of each number are met by chance more often than in a whole file.
func FuzzLimits(f *testing.F) {
	f.Add("100/minute", "token_bucket", int64(10), int64(0), int64(10), int64(1), int64(5))
	f.Add("9500/1h30m", "sliding_log", int64(0), int64(0), int64(5), int64(9000), int64(0))
	f.Add("1/1ms", "sub_windows", int64(0), int64(100), int64(1000), int64(2), int64(0))
	f.Add("1/366h", "leaky_bucket", int64(0), int64(0), int64(0), int64(0), int64(30000))
	f.Fuzz(func(t *testing.T, rate, algorithm string, burst, parts, soft, cost, places int64) {
		src := "version: 1\nrules:\n  - name: a\n    per: ip\n"
		line := func(value int64, format string) {
			if value != 0 {
				src += fmt.Sprintf(format, value)
			}
		}
		src += fmt.Sprintf("    limits: { rate: %q, algorithm: %q", rate, algorithm)
		line(burst, ", burst: %d")
		line(parts, ", parts: %d")
		src += " }\n"
		line(soft, "    over: { soft: %d%% }\n")
		line(cost, "    cost: %d\n")
		line(places, "    queue: { places: %d, max_wait: 1s }\n")
		file, problems := Parse("rules.yaml", []byte(src), Options{})
		if !problems.HasErrors() {
			countable(t, file.Rules[0])
		}
	})
}

// countable holds r to limits that can be made, those above them included.
func countable(t *testing.T, r *Rule) {
	t.Helper()
	var specs []tidegate.Spec
	add := func(terms Terms) {
		if terms.Limits != nil {
			for i := range terms.Limits.All {
				specs = append(specs, terms.Limits.All[i].specs()...)
			}
			if over := terms.Over; over != nil && (over.Soft > 0 || over.Elastic != nil) {
				for _, s := range specs {
					specs = append(specs, over.Ceiling(s))
				}
			}
		}
		if terms.Quota != nil {
			specs = append(specs, terms.Quota.Spec)
		}
		if terms.Concurrency != nil {
			specs = append(specs, terms.Concurrency.Spec)
		}
	}
	add(r.Terms)
	for i := range r.For {
		add(r.For[i].Terms)
		add(r.Under(&r.For[i]))
	}
	if r.Candidate != nil {
		specs = append(specs, r.Candidate.specs()...)
	}
	if r.Block > 0 {
		specs = append(specs, tidegate.Spec{Events: 1, Period: r.Block})
	}
	if !r.Deny && (len(specs) == 0 && (r.Terms.Limits == nil || !r.Terms.Limits.Unlimited) || len(r.Per) == 0) {
		t.Errorf("rule %q counts nothing or nobody", r.Name.Text)
	}
	for _, s := range specs {
		if _, err := tidegate.NewLimit(s); err != nil || s.Algorithm == tidegate.Auto {
			t.Errorf("rule %q: %+v: %v", r.Name.Text, s, err)
		}
	}
}
