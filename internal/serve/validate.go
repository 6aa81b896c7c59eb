package serve

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/rules"
)

// compile makes a Set of rules that an operator wants to know about. They may name the files
// that the rules in force were read from and no others: whoever may only look must not read
// files of this machine.
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

// compileFiles makes a Set of rules whose files are all at hand: none of this machine is read.
func (s *server) compileFiles(main string, files map[string]string) (*rules.Set, error) {
	layer := rules.Layer{Name: "new rules", Main: main, Files: make(map[string][]byte, len(files))}
	for name, text := range files {
		layer.Files[name] = []byte(text)
	}
	return rules.LoadLayers([]rules.Layer{layer}, s.rulesConfig())
}

// compileDraft is compile for rules of several layers, or of a source. The draft takes the place
// of the rule file of that name in the last layer that has one; if none has, it is read alone. It
// may name the files of its layer.
func (s *server) compileDraft(name string, src []byte) (*rules.Set, error) {
	bundles, err := s.rules.Bundles()
	if err != nil && !s.rules.Status().None {
		return nil, err
	}
	var layers []rules.Layer
	last := -1
	for i, b := range bundles {
		layers = append(layers, rules.Layer{Name: s.rules.Status().Layers[i].Name, Main: b.Main, Files: maps.Clone(b.Files)})
		if _, ok := b.Files[name]; ok {
			last = i
		}
	}
	if last < 0 {
		layers, last = []rules.Layer{{Name: "draft", Main: name, Files: make(map[string][]byte)}}, 0
	}
	layers[last].Files[name] = src
	return rules.LoadLayers(layers, s.rulesConfig())
}

var errNotInForce = errors.New("only files that the rules in force name can be read here")
