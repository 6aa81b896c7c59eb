package rulefile

import (
	"path/filepath"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// MaxBytes bounds every file that is read, rule files and lists.
const MaxBytes = 16 << 20

// Options are for tests and for callers that keep files elsewhere; the zero value
// reads from disk.
type Options struct {
	ReadFile func(name string) ([]byte, error)      // nil means from disk, at most MaxBytes
	Glob     func(pattern string) ([]string, error) // nil means filepath.Glob; for include
	Now      func() time.Time                       // nil means time.Now; for until
}

// Read reads a rule file with all that it includes, or a folder. The *.yaml and *.yml files of
// a folder, without tests, are joined as if one file included them. The File is nil only if
// nothing could be read; it is fit for use only if the list has no errors.
func Read(name string, o Options) (*File, diag.List) { return Join([]Layer{{Name: name}}, o) }

// Join is Read for several layers. A name that two of them have is an error, unless the later
// one says `replace`.
func Join(layers []Layer, o Options) (*File, diag.List) {
	d := newLayeredDecoder(layers, o)
	for d.at = range layers {
		d.readLayer()
	}
	return d.finish()
}

// Parse is Read for a file with the text src. What it includes is read as if src were in a
// file called name.
func Parse(name string, src []byte, o Options) (*File, diag.List) {
	d := newDecoder(name, o)
	d.readText(filepath.Clean(name), src, nil)
	return d.finish()
}

func newDecoder(name string, o Options) *decoder { return newLayeredDecoder([]Layer{{Name: name}}, o) }

func newLayeredDecoder(layers []Layer, o Options) *decoder {
	if o.ReadFile == nil {
		o.ReadFile = bounded.Files(MaxBytes)
	}
	if o.Glob == nil {
		o.Glob = filepath.Glob
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	var names []string
	for _, l := range layers {
		names = append(names, l.Name)
	}
	return &decoder{
		o:        o,
		now:      o.Now(),
		layers:   layers,
		file:     &File{Name: strings.Join(names, ", "), Layers: make([][]string, len(layers)), lines: make(map[string]diag.Lines)},
		reported: make(map[reportKey]bool),
		broken:   make(map[diag.Pos]bool),
		room:     maxMade,
		once:     make(map[string]occurrence),

		ruleAt:    make(map[string]int),
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
	if len(d.trees) == 0 && len(d.file.Domains) == 0 {
		return nil, d.problems.List()
	}
	return d.file, d.problems.List()
}

// decode reads the trees into the File.
func (d *decoder) decode() {
	var roots []object
	var layers []int // of roots
	for _, t := range d.trees {
		if o, ok := d.root(t); ok {
			roots, layers = append(roots, o), append(layers, t.layer)
		}
	}
	if len(roots) == 0 {
		return
	}
	first := roots[0].at
	clear(d.trees) // roots have what is still needed
	each := func(do func(object)) {
		for i, o := range roots {
			d.at = layers[i]
			do(o)
		}
	}
	each(d.identify)
	each(d.lists)
	each(d.settings)
	each(d.fileShed) // which names classes of any file
	each(d.tiers)
	each(d.exempt)
	each(func(o object) { d.waive(o, "", Extent{From: o.at}) })
	written := false
	for i := range roots {
		d.at = layers[i]
		written = d.rules(roots[i]) || written
		roots[i] = object{} // frees the tree, which is far larger than the rules made from it
	}
	if !written && !d.partial && len(d.file.Domains) == 0 {
		d.fail(first, "there are no rules", "write `rules:` with at least one, as in `- { name: api, per: ip, limits: 100/minute }`")
	}
	d.unusedTiers()
	d.unusedClasses()
	d.checkInsteadOf()
	d.jitterSpreads()
}
