package rules

import (
	"errors"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/envoy"
)

// Domains returns the domains of Envoy's rate limit service that files of the folder have:
// configurations of envoyproxy/ratelimit, among or instead of rule files. The Set itself
// matches requests by its rules alone. It is nil if there are no domains.
func (s *Set) Domains() *envoy.Set { return s.domains }

// domains loads the domain files of f.
func (c *Config) domains(f *rulefile.File) (*envoy.Set, diag.List) {
	if f == nil || len(f.Domains) == 0 {
		return nil, nil
	}
	files := make([]envoy.File, len(f.Domains))
	for i, d := range f.Domains {
		files[i] = envoy.File{Name: d.Name, Text: d.Text}
	}
	set, err := envoy.Load(files, envoy.Options{MergeDomains: c.MergeDomains})
	var problems envoy.Problems
	errors.As(err, &problems)
	return set, problems
}
