package domainfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Nothing that somebody writes makes Read panic, every problem can be shown, and what has no
// problems is complete.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, false)
	}
	f.Fuzz(func(t *testing.T, src []byte, merge bool) {
		file, problems := Read([]Text{{"a.yaml", src}, {"b.yaml", src}}, Options{MergeDomains: merge})
		for _, p := range problems {
			if p.Message == "" || p.Hint == "" {
				t.Fatalf("a problem says too little: %+v", p)
			}
		}
		if problems.HasErrors() {
			return
		}
		var each func([]*Descriptor)
		each = func(all []*Descriptor) {
			for _, d := range all {
				if d.Key.Text == "" || d.Key.Pos.Line == 0 || d.Shared && !d.HasStar() {
					t.Fatalf("%+v is a descriptor", d)
				}
				if l := d.Limit; l != nil && !l.Unlimited && !slices.Contains(Units, l.Unit) && len(l.Own.Limits) == 0 {
					t.Fatalf("%+v is a limit", l)
				}
				each(d.Descriptors)
			}
		}
		for _, d := range file.Domains {
			if d.Name.Text == "" {
				t.Fatal("a domain without a name")
			}
			each(d.Descriptors)
		}
	})
}
