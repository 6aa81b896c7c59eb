package envoy

import (
	"maps"
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/domainfile"
)

// File is a configuration file in memory. Problems call it Name.
type File struct {
	Name string
	Text []byte
}

// Options are how files are read. The zero value is what envoyproxy/ratelimit does.
type Options struct {
	// MergeDomains: files may have descriptors of the same domain. Without it, that is
	// an error.
	MergeDomains bool
}

// Problem is an error or a warning about a file.
type Problem = diag.Problem

// Pos is a place in a file: File, Line and Col, which count from 1, Col in characters.
type Pos = diag.Pos

// Problems is everything found in files. As an error it shows each problem with its line
// and a caret.
type Problems = diag.List

// Set is all domains of a configuration. It is immutable and safe for concurrent use; nil
// has no domains. [Load] returns one.
type Set struct {
	domains map[string]*Domain
}

// Load reads the files of one configuration. The error is [Problems], with everything that
// is wrong: files are used together or not at all.
func Load(files []File, o Options) (*Set, error) {
	texts := make([]domainfile.Text, len(files))
	for i, f := range files {
		texts[i] = domainfile.Text{Name: f.Name, Src: f.Text}
	}
	written, problems := domainfile.Read(texts, domainfile.Options{MergeDomains: o.MergeDomains})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	c := compiler{written: written}
	set := c.set()
	if err := c.problems.List().Err(); err != nil {
		return nil, err
	}
	return set, nil
}

// Domain returns the domain of that name, nil if no file has it.
func (s *Set) Domain(name string) *Domain {
	if s == nil {
		return nil
	}
	return s.domains[name]
}

// Domains returns the names of all domains, sorted.
func (s *Set) Domains() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.domains))
}

// Domain is the rules of one domain. [Domain.Find] and [Domain.Override] find the rule of a
// descriptor.
type Domain struct {
	name      string
	atomic    bool
	level     level
	rules     []*Rule
	overrides overrides
	metrics   metricNames
}

// Name returns the name of the domain.
func (d *Domain) Name() string { return d.name }

// Atomic reports whether a call is charged for all of its descriptors or for none, as
// `tidegate: { atomic: true }` says. Otherwise each descriptor is decided by itself.
func (d *Domain) Atomic() bool { return d.atomic }

// Rules returns the rules that limit something or are unlimited, in the order of the files.
func (d *Domain) Rules() []*Rule { return slices.Clone(d.rules) }
