package rulefile

import (
	"os"
	"path/filepath"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// Options are for tests and for whoever keeps files elsewhere; the zero value
// reads from disk.
type Options struct {
	ReadFile func(name string) ([]byte, error)      // nil: from disk, at most MaxBytes
	Glob     func(pattern string) ([]string, error) // nil: filepath.Glob; for include
	Now      func() time.Time                       // nil: time.Now; for until
}

// Read reads a rule file with all that it includes, or a folder, whose *.yaml
// and *.yml but for tests are joined as if one file included them. The File is nil only when
// nothing could be read; it is fit for use only when the list has no errors.
func Read(name string, o Options) (*File, diag.List) {
	d := newDecoder(name, o)
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		d.readFolder(name)
	} else {
		d.readFile(name, diag.Pos{File: name}, nil)
	}
	return d.finish()
}

// Parse is Read for a file whose text is at hand. What it includes is read as
// if the file were called name.
func Parse(name string, src []byte, o Options) (*File, diag.List) {
	d := newDecoder(name, o)
	d.readText(filepath.Clean(name), src, nil)
	return d.finish()
}

func newDecoder(name string, o Options) *decoder {
	if o.ReadFile == nil {
		o.ReadFile = bounded.Files(MaxBytes)
	}
	if o.Glob == nil {
		o.Glob = filepath.Glob
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &decoder{
		o:        o,
		now:      o.Now(),
		file:     &File{Name: name, lines: make(map[string]diag.Lines)},
		reported: make(map[reportKey]bool),
		broken:   make(map[diag.Pos]bool),
		once:     make(map[string]diag.Pos),

		listAt:    make(map[string]int),
		tierAt:    make(map[string]int),
		addresses: make(map[*List]bool),
	}
}

// finish decodes what was collected: first the names that any file may use,
// then the rules that use them.
func (d *decoder) finish() (*File, diag.List) {
	if len(d.trees) > 0 {
		d.file.Pos = d.trees[0].root.Pos
		d.decode()
	}
	if len(d.trees) == 0 {
		return nil, d.problems.List()
	}
	return d.file, d.problems.List()
}

func (d *decoder) decode() {
	var roots []object
	for _, t := range d.trees {
		if o, ok := d.root(t); ok {
			roots = append(roots, o)
		}
	}
	if len(roots) == 0 {
		return
	}
	for _, o := range roots {
		d.identify(o)
	}
	for _, o := range roots {
		d.lists(o)
	}
	for _, o := range roots {
		d.settings(o)
	}
	for _, o := range roots {
		d.tiers(o)
	}
	for _, o := range roots {
		d.exempt(o)
	}
	for _, o := range roots {
		d.waive(o, "", Extent{From: o.at})
	}
	written := false
	for _, o := range roots {
		written = d.rules(o) || written
	}
	if !written && !d.partial {
		d.fail(roots[0].at, "there are no rules", "write `rules:` with at least one, as in `- { name: api, per: ip, limits: 100/minute }`")
	}
	d.unusedTiers()
	d.checkInsteadOf()
	d.jitterSpreads()
}
