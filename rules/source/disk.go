package source

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// ReadBundle reads a rule file or a folder of them into a Bundle, with all includes and lists, and
// nothing else. It does not validate the rules; a file that cannot be read is left out. It sets
// Hash.
func ReadBundle(name string) (*Bundle, error) {
	texts := make(map[string][]byte)
	open := bounded.Files(MaxFile)
	var failed error
	f, problems := rulefile.Read(name, rulefile.Options{ReadFile: func(file string) ([]byte, error) {
		text, err := open(file)
		if err == nil {
			texts[file] = text
		} else if failed == nil {
			failed = err
		}
		return text, err
	}})
	switch {
	case len(texts) == 0 && failed != nil:
		return nil, fmt.Errorf("read rules: %w", failed)
	case f == nil:
		return nil, problems
	}
	p := diskPart{root: filepath.Clean(name), folder: isFolder(name), files: texts}
	return p.bundle()
}

func isFolder(name string) bool { return markOf(name).isDir() }

var errAbsolute = errors.New("they name files by absolute paths, which lead elsewhere on another machine: name them from the folder of the rule file")

// bundle returns the files as a Bundle, whose top is the folder that contains all of them.
func (p *diskPart) bundle() (*Bundle, error) {
	base := p.root
	if !p.folder {
		base = filepath.Dir(p.root)
	}
	above := 0 // how many folders above base the farthest file is
	names := make(map[string]string, len(p.files))
	for name := range p.files {
		rel := from(base, name)
		names[name] = rel
		n := 0
		for rest := rel; strings.HasPrefix(rest, "../"); rest = rest[len("../"):] {
			n++
		}
		above = max(above, n)
	}
	inside, err := below(base, above)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Files: make(map[string][]byte, len(p.files))}
	for name, rel := range names {
		b.Files[filepath.ToSlash(filepath.Join(inside, rel))] = p.files[name]
	}
	switch {
	case !p.folder:
		b.Main = filepath.ToSlash(filepath.Join(inside, filepath.Base(p.root)))
	case above > 0:
		b.Main = filepath.ToSlash(inside) + "/"
	}
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("the rules in %s cannot be handed on: %w", p.root, err)
	}
	if f, _ := rulefile.Join(b.Layers(""), rulefile.Options{}); f == nil || len(f.Layers[0]) < len(p.files) {
		return nil, fmt.Errorf("the rules in %s cannot be handed on: %w", p.root, errAbsolute)
	}
	b.Hash = b.Sum()
	return b, nil
}

// below returns the path of base relative to the folder that many levels above it.
func below(base string, above int) (string, error) {
	if above == 0 {
		return "", nil
	}
	abs, err := filepath.Abs(base)
	if err != nil {
		return "", err
	}
	steps := strings.Split(filepath.ToSlash(abs), "/")
	return filepath.Join(steps[max(len(steps)-above, 0):]...), nil
}

// Bundles returns the files that the rules in force were read from, one Bundle for each layer. The
// error says why other machines cannot use them.
func (w *Watcher) Bundles() ([]*Bundle, error) {
	r := w.reloader
	r.mu.Lock()
	parts := append([]part(nil), r.parts...)
	none := r.status.None
	r.mu.Unlock()
	if none {
		return nil, errors.New("there are no rules yet")
	}
	all := make([]*Bundle, len(parts))
	for i, p := range parts {
		if p.bundle == nil {
			b, err := p.disk.bundle()
			if err != nil {
				return nil, err
			}
			all[i] = b
			continue
		}
		b := *p.bundle
		b.Hash = p.Hash
		all[i] = &b
	}
	return all, nil
}

// KeepCopies writes the files in force of all layers that are not on disk into a folder, for a
// process that takes over: see [Options.Handed].
func (w *Watcher) KeepCopies(folder string) error {
	r := w.reloader
	r.mu.Lock()
	parts := append([]part(nil), r.parts...)
	r.mu.Unlock()
	for i, p := range parts {
		if p.bundle == nil {
			continue
		}
		if err := saveCopy(folder, r.layers[i].name(), p.bundle); err != nil {
			return err
		}
	}
	return nil
}
