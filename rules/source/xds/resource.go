package xds

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules/envoy"
)

// The types of what a server sends: a configuration, or a named resource that contains one.
const (
	configType   = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
	resourceType = "type.googleapis.com/envoy.service.discovery.v3.Resource"
)

const (
	// maxText bounds the text of all resources together, in bytes. The reader of rules bounds that
	// of each.
	maxText = 8 << 20
	// maxName is how many characters of a name that the server sends are shown.
	maxName = 200
)

// translate returns every resource as the text of a rule file, in the order of their names:
// a server may send them in any. The problems are those that the text does not show.
func translate(resources []*anypb.Any) ([]envoy.File, diag.List) {
	var (
		configs  []*ratelimit.RateLimitConfig
		problems diag.Tally
		bounds   survey
	)
	for i, r := range resources {
		c, err := unpack(r, &bounds)
		if err != nil {
			problems.Add(diag.Problem{Pos: diag.Pos{File: fmt.Sprintf("xds:resource %d", i+1)}, Message: err.Error()})
			continue
		}
		configs = append(configs, c)
	}
	slices.SortFunc(configs, func(a, b *ratelimit.RateLimitConfig) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetDomain(), b.GetDomain()))
	})
	var files []envoy.File
	total, seen := 0, make(map[string]bool)
	for _, c := range configs {
		file := fileName(c)
		text, bad := write(file, c)
		problems.Add(bad...)
		if seen[file] {
			problems.Add(diag.Problem{Pos: diag.Pos{File: file}, Message: "two resources have this name", Hint: "a server sends each resource once"})
		}
		seen[file] = true
		if total += len(text); total > maxText {
			problems.Add(diag.Problem{Pos: diag.Pos{File: file}, Message: fmt.Sprintf("all resources together are more than %d MiB of text", maxText>>20)})
			break
		}
		files = append(files, envoy.File{Name: file, Text: text})
	}
	return files, problems.List()
}

// fileName returns the name of a resource in problems.
func fileName(c *ratelimit.RateLimitConfig) string {
	name := cmp.Or(c.GetName(), c.GetDomain())
	if short := clip(name); short != name {
		return fmt.Sprintf("xds:%s(%x)", short, sha256.Sum256([]byte(name)))
	}
	return "xds:" + name
}

// clip shortens text to maxName.
func clip(text string) string {
	if r := []rune(text); len(r) > maxName {
		return string(r[:maxName]) + "…"
	}
	return text
}

// unpack returns the configuration in a resource.
func unpack(r *anypb.Any, bounds *survey) (*ratelimit.RateLimitConfig, error) {
	if r.GetTypeUrl() == resourceType {
		var outer discovery.Resource
		if err := bounds.message(r.GetValue(), outer.ProtoReflect().Descriptor(), 0); err != nil {
			return nil, err
		}
		if err := proto.Unmarshal(r.GetValue(), &outer); err != nil {
			return nil, fmt.Errorf("not a resource: %w", err)
		}
		switch {
		case outer.GetTtl() != nil:
			return nil, errors.New("the resource " + diag.Quote(outer.GetName()) + " has a time to live, and rules are in force until the server removes them")
		case outer.GetResource() == nil:
			return nil, errors.New("the resource " + diag.Quote(outer.GetName()) + " is empty")
		}
		r = outer.GetResource()
	}
	if r.GetTypeUrl() != configType {
		return nil, errors.New("the server sent " + diag.Quote(r.GetTypeUrl()) + ", and only " + diag.Quote(configType) + " was asked for")
	}
	c := new(ratelimit.RateLimitConfig)
	if err := bounds.message(r.GetValue(), c.ProtoReflect().Descriptor(), 0); err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(r.GetValue(), c); err != nil {
		return nil, fmt.Errorf("not a rate limit configuration: %w", err)
	}
	return c, nil
}

// compile makes rules of resources. The error has every problem.
func compile(resources []*anypb.Any, o envoy.Options) (*envoy.Set, [sha256.Size]byte, error) {
	files, problems := translate(resources)
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %d\n", f.Name, len(f.Text))
		h.Write(f.Text)
	}
	set, err := envoy.Load(files, o)
	var more diag.List
	if errors.As(err, &more) {
		problems.Add(more...)
		problems.Sort()
	} else if err != nil {
		return nil, [sha256.Size]byte{}, err
	}
	if err := problems.Bounded().Err(); err != nil {
		return nil, [sha256.Size]byte{}, err
	}
	return set, [sha256.Size]byte(h.Sum(nil)), nil
}
