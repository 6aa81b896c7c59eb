package lint

import (
	"errors"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/domainfile"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/envoy"
)

// domainProblems returns what keeps the domain files of f from loading.
func domainProblems(f *rulefile.File, merge bool) diag.List {
	if len(f.Domains) == 0 {
		return nil
	}
	files := make([]envoy.File, len(f.Domains))
	for i, d := range f.Domains {
		files[i] = envoy.File{Name: d.Name, Text: d.Text}
	}
	_, err := envoy.Load(files, envoy.Options{MergeDomains: merge})
	var problems envoy.Problems
	errors.As(err, &problems)
	return problems
}

// domainsOf reads the domain files of f, nil if there are none or they have mistakes.
func domainsOf(f *rulefile.File) *domainfile.File {
	if len(f.Domains) == 0 {
		return nil
	}
	texts := make([]domainfile.Text, len(f.Domains))
	for i, d := range f.Domains {
		texts[i] = domainfile.Text{Name: d.Name, Src: d.Text}
	}
	file, problems := domainfile.Read(texts, domainfile.Options{MergeDomains: true})
	if problems.HasErrors() {
		return nil
	}
	return file
}

// domainWaivers returns the waivers of domain files, each for the whole of its file.
func domainWaivers(f *domainfile.File) []rulefile.Waiver {
	if f == nil {
		return nil
	}
	var all []rulefile.Waiver
	for _, w := range f.Waive {
		all = append(all, rulefile.Waiver{
			Check: rulefile.Word{Text: w.Check.Text, Pos: w.Check.Pos}, Reason: w.Reason,
			In: rulefile.Extent{From: diag.Pos{File: w.Check.Pos.File}},
		})
	}
	return all
}

// levels calls f for each list of descriptors, beside, with the descriptors above it, path.
func (p *pass) levels(f func(domain *domainfile.Domain, path, beside []*domainfile.Descriptor)) {
	if p.domains == nil {
		return
	}
	for _, d := range p.domains.Domains {
		var walk func(path, beside []*domainfile.Descriptor)
		walk = func(path, beside []*domainfile.Descriptor) {
			p.step(len(beside))
			f(d, path, beside)
			for _, one := range beside {
				if len(one.Descriptors) > 0 {
					walk(append(path[:len(path):len(path)], one), one.Descriptors)
				}
			}
		}
		walk(nil, d.Descriptors)
	}
}

// descriptors calls f for every descriptor, with the descriptors above it.
func (p *pass) descriptors(f func(domain *domainfile.Domain, path []*domainfile.Descriptor, d *domainfile.Descriptor)) {
	p.levels(func(domain *domainfile.Domain, path, beside []*domainfile.Descriptor) {
		for _, d := range beside {
			f(domain, path, d)
		}
	})
}

// otherwise returns the descriptor that would match the values of d if d were not there; nil if
// none would.
func otherwise(d *domainfile.Descriptor, beside []*domainfile.Descriptor) *domainfile.Descriptor {
	var alone *domainfile.Descriptor
	for _, other := range beside {
		switch {
		case other == d || other.Key.Text != d.Key.Text || d.Value.Text == "":
		case other.Value.Text == "":
			alone = other
		case other.HasStar() && covers(other.Value.Text, d.Value.Text):
			return other
		}
	}
	return alone
}

// entry returns the text of a descriptor in messages: key=value.
func entry(d *domainfile.Descriptor) string {
	if d.Value.Text == "" {
		return diag.Quote(d.Key.Text)
	}
	return diag.Quote(d.Key.Text + "=" + d.Value.Text)
}
