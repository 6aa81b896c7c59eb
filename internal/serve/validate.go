package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// compile makes a Set of rules that an operator wants to check. The rules may only refer to files
// that the rules in force were read from: an operator who may only view must not read other files
// of this machine.
func (s *server) compile(name string, src []byte) (*rules.Set, error) {
	c := s.rulesConfig()
	known := s.rules.Status().Files
	c.ReadFile = func(name string) ([]byte, error) {
		if !slices.ContainsFunc(known, func(k string) bool { return filepath.Clean(k) == filepath.Clean(name) }) {
			return nil, &fs.PathError{Op: "read", Path: name, Err: errNotInForce}
		}
		return bounded.Files(maxRules)(name)
	}
	c.Glob = func(pattern string) (found []string, err error) {
		for _, k := range known {
			if ok, err := filepath.Match(pattern, k); err != nil {
				return nil, err
			} else if ok {
				found = append(found, k)
			}
		}
		return found, nil
	}
	if len(s.config.Rules) > 1 || s.config.HasSource() {
		return s.compileDraft(cmp.Or(name, "rules.yaml"), src)
	}
	folder := strings.Join(s.config.Rules, "") // "" for the example
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		folder = filepath.Dir(folder)
	}
	return rules.Parse(filepath.Join(folder, cmp.Or(name, "rules.yaml")), src, c)
}

// compileFiles makes a Set of rules whose files are all in the proposal; it reads none of this
// machine. A layer of them is joined with the other layers in force.
func (s *server) compileFiles(q *admin.Proposal) (*rules.Set, error) {
	b := &source.Bundle{Main: q.Main, Over: q.Over, Files: make(map[string][]byte, len(q.Files))}
	for name, text := range q.Files {
		b.Files[name] = []byte(text)
	}
	if q.Layer == "" {
		return rules.LoadLayers(b.Layers("new rules"), s.rulesConfig())
	}
	st := s.rules.Status()
	var names []string
	for i := range st.Layers {
		names = append(names, st.Layers[i].Name)
	}
	at := slices.Index(names, q.Layer)
	if at < 0 {
		return nil, fmt.Errorf("%q is not a layer of this server, which has %s", q.Layer, cmp.Or(strings.Join(names, ", "), "none"))
	}
	bundles, err := s.rules.Bundles()
	switch {
	case err != nil && len(names) > 1:
		return nil, fmt.Errorf("the other layers: %w", err)
	case err != nil:
		bundles = make([]*source.Bundle, 1)
	}
	bundles[at] = b
	return s.compileLayers(bundles)
}

// compileDraft is compile for rules in several layers, or from a source. The draft replaces the
// rule file of that name in the last layer that has one; if none has, it is compiled alone. It may
// refer to the files of its layer.
func (s *server) compileDraft(name string, src []byte) (*rules.Set, error) {
	bundles, err := s.rules.Bundles()
	if err != nil && !s.rules.Status().None {
		return nil, err
	}
	last := -1
	for i, b := range bundles {
		if _, ok := b.Files[name]; ok {
			last = i
		}
	}
	if last < 0 {
		alone := rules.Layer{Name: "draft", Main: name, Files: map[string][]byte{name: src}}
		return rules.LoadLayers([]rules.Layer{alone}, s.rulesConfig())
	}
	draft := *bundles[last]
	draft.Files = maps.Clone(draft.Files)
	draft.Files[name] = src
	bundles[last] = &draft
	return s.compileLayers(bundles)
}

// compileLayers makes a Set of one bundle for each layer of this server.
func (s *server) compileLayers(bundles []*source.Bundle) (*rules.Set, error) {
	var layers []rules.Layer
	for i, b := range bundles {
		layers = append(layers, b.Layers(s.rules.Status().Layers[i].Name)...)
	}
	return rules.LoadLayers(layers, s.rulesConfig())
}

var errNotInForce = errors.New("only files that the rules in force name can be read here")
