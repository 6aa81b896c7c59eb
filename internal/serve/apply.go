package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"tidegate.dev/tidegate/internal/dev/demo"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/durable"
	"tidegate.dev/tidegate/internal/serve/origins"
	"tidegate.dev/tidegate/rules/source"
)

// applier changes rules where they come from: in their files, or in an archive.
type applier struct {
	server *server

	writing sync.Mutex // held while files are compared and replaced

	mu    sync.Mutex
	taker map[string]takes // by URL; under mu
}

// takes says whether rules can be published at a source: fixed says why not, reaches who gets them.
type takes struct{ fixed, reaches string }

// Layers implements [admin.Applier].
func (a *applier) Layers() ([]admin.EditableLayer, error) {
	s := a.server
	if s.rules.Watcher == nil {
		example := admin.Editable(exampleName, &source.Bundle{Main: exampleName, Files: map[string][]byte{exampleName: demo.Rules}})
		example.Fixed = "they are those of the example, which are built in"
		return []admin.EditableLayer{example}, nil
	}
	bundles, err := s.rules.Bundles()
	if err != nil {
		return nil, err
	}
	st := s.rules.Status()
	var all []admin.EditableLayer
	for i, b := range bundles {
		l := admin.Editable(st.Layers[i].Name, b)
		if st.Layers[i].Origin {
			l.Fixed, l.Reaches = a.archived(s.config.Rules[i])
		} else {
			l.Fixed, l.Reaches = a.onDisk(s.config.Rules[i], b)
		}
		all = append(all, l)
	}
	return all, nil
}

// archived returns why rules cannot be published at a source, "" if they can, and who gets them. It
// remembers the answer, unless the source could not be opened.
func (a *applier) archived(url string) (fixed, reaches string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.taker[url]; ok {
		return known.fixed, known.reaches
	}
	o, err := a.open(url)
	if err != nil {
		return "the source cannot be opened: " + err.Error(), ""
	}
	defer o.Close()
	is := takes{reaches: "all who follow " + o.Name()}
	if _, ok := o.(source.Archive); !ok {
		is = takes{fixed: "the source is only read; change them where they are published"}
	}
	if a.taker == nil {
		a.taker = make(map[string]takes)
	}
	a.taker[url] = is
	return is.fixed, is.reaches
}

func (a *applier) open(url string) (source.Origin, error) {
	from := a.server.config.RulesSource
	return origins.Open(url, origins.Options{TokenFile: from.TokenFile, User: from.User, PasswordFile: from.PasswordFile, CA: from.CA, Cert: from.Cert, Key: from.Key})
}

// onDisk returns why the files of a layer cannot be written, "" if they can, and who gets the
// changes.
func (a *applier) onDisk(name string, b *source.Bundle) (fixed, reaches string) {
	folder, ok := folderOf(name, b)
	if !ok {
		return "they name files outside of their folder", ""
	}
	for file := range b.Files {
		f, err := os.OpenFile(filepath.Join(folder, filepath.FromSlash(file)), os.O_WRONLY, 0)
		if err != nil {
			return "the server may not write them: " + err.Error(), ""
		}
		_ = f.Close() // nothing was written
	}
	reaches = "this instance"
	if a.server.shared != nil {
		reaches = "this instance alone, and others that read the same files; a source such as Redis would reach all"
	}
	return "", reaches
}

// folderOf returns the folder that the file names of a bundle from disk are relative to. ok is false
// if the bundle names files outside of it.
func folderOf(name string, b *source.Bundle) (folder string, ok bool) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return name, b.Main == "" && len(b.Over) == 0
	}
	return filepath.Dir(name), b.Main == filepath.Base(name) && len(b.Over) == 0
}

// Replace implements [admin.Applier].
func (a *applier) Replace(ctx context.Context, layer *admin.EditableLayer, b *source.Bundle) (where string, err error) {
	s := a.server
	st := s.rules.Status()
	at := slices.IndexFunc(st.Layers, func(l source.LayerStatus) bool { return l.Name == layer.Name })
	if at < 0 {
		return "", fmt.Errorf("there is no layer %s any more", layer.Name)
	}
	name := s.config.Rules[at]
	if !st.Layers[at].Origin {
		return a.write(name, layer, b)
	}
	where, err = a.publish(ctx, name, b, layer.Bundle.Revision)
	if refused := st.Layers[at].Refused; refused != nil && errors.Is(err, source.ErrConflict) {
		return "", fmt.Errorf("%w: revision %s is newer and does not load; publish over it with `tidegate rules push`", err, refused.Revision)
	}
	return where, err
}

// publish makes b the newest revision of an archive, if head still is the newest.
func (a *applier) publish(ctx context.Context, url string, b *source.Bundle, head string) (where string, err error) {
	o, err := a.open(url)
	if err != nil {
		return "", err
	}
	defer o.Close()
	archive, ok := o.(source.Archive)
	if !ok {
		return "", errors.New("the source is read-only")
	}
	b.Hash = b.Sum()
	if err := b.Check(); err != nil {
		return "", err
	}
	revision, err := archive.Publish(ctx, b, head)
	if err != nil {
		return "", err
	}
	return "revision " + revision + " of " + o.Name(), nil
}

// write replaces the files of a layer on disk that differ from those before. It fails if another
// program has changed them meanwhile.
func (a *applier) write(name string, layer *admin.EditableLayer, b *source.Bundle) (where string, err error) {
	was := layer.Bundle
	folder, ok := folderOf(name, was)
	if !ok || b.Main != was.Main || len(b.Over) > 0 {
		return "", errors.New("these files are not laid out as those in force: put them in place by hand")
	}
	for file := range was.Files {
		if _, kept := b.Files[file]; !kept && was.Main == "" {
			return "", fmt.Errorf("the set has no file %s, which would stay in the folder: put the files in place by hand", file)
		}
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	var changes []fileChange
	for _, file := range slices.Sorted(maps.Keys(b.Files)) {
		if !filepath.IsLocal(filepath.FromSlash(file)) {
			return "", fmt.Errorf("%s is outside of the folder of the rules", file)
		}
		old, had := was.Files[file]
		if had && bytes.Equal(b.Files[file], old) {
			continue
		}
		c := fileChange{path: filepath.Join(folder, filepath.FromSlash(file)), is: b.Files[file], mode: 0o644}
		c.was, err = os.ReadFile(c.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if c.there = err == nil; c.there != had || !bytes.Equal(c.was, old) {
			return "", fmt.Errorf("%w: %s is not what is in force", source.ErrConflict, c.path)
		}
		if info, err := os.Stat(c.path); err == nil {
			c.mode = info.Mode().Perm()
		}
		changes = append(changes, c)
	}
	a.server.past.credit(layer.Name, b) // before they come in force
	return name, writeAll(changes)
}

// fileChange is a file that is to be replaced or made.
type fileChange struct {
	path    string
	was, is []byte
	mode    fs.FileMode
	there   bool // it was there before
}

// writeAll makes all changes, or none.
func writeAll(changes []fileChange) error {
	for i, c := range changes {
		err := os.MkdirAll(filepath.Dir(c.path), 0o755)
		if err == nil {
			err = durable.WriteFile(c.path, c.is, c.mode)
		}
		if err != nil {
			return errors.Join(err, undo(changes[:i]))
		}
	}
	return nil
}

// undo restores the files as they were before the changes.
func undo(changes []fileChange) (err error) {
	for _, c := range changes {
		if c.there {
			err = errors.Join(err, durable.WriteFile(c.path, c.was, c.mode))
		} else {
			err = errors.Join(err, os.Remove(c.path))
		}
	}
	return err
}
