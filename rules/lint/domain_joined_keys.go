package lint

import (
	"fmt"

	"tidegate.dev/tidegate/internal/lang/domainfile"
)

func domainJoinedKeys(p *pass) {
	if p.domains == nil {
		return
	}
	seen := make(map[string]*domainfile.Descriptor)
	p.descriptors(func(domain *domainfile.Domain, path []*domainfile.Descriptor, d *domainfile.Descriptor) {
		name := domainfile.Path(domain.Name.Text, append(path[:len(path):len(path)], d)...)
		other, ok := seen[name]
		if !ok {
			seen[name] = d
			return
		}
		p.warn(d.Key.Pos, fmt.Sprintf("envoyproxy/ratelimit joins keys and values, so that this descriptor is %q like the one in line %d: it refuses the file, or counts both together", name, other.Key.Pos.Line),
			"here they are apart; while the other service decides as well, rename one of them")
	})
}
