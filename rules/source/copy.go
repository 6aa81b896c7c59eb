package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/durable"
)

// copies are the last good bundles of origins, on disk, and what to do without them.
type copies struct {
	folder       string        // "" means they are not kept
	handed       string        // where a predecessor has left its copies; "" means nowhere
	startTimeout time.Duration // how long the start waits for an origin without a copy
	openStart    bool
	none         func() error       // puts empty rules in force
	told         string             // the last error that was logged
	saved        map[string]*Bundle // what this process last wrote to folder, by layer
}

// savedBundle is a Bundle as it is written.
type savedBundle struct {
	Layer  string            `json:"layer"`
	Sum    string            `json:"sum"` // of the files: a copy that is cut short or changed is not used
	Main   string            `json:"main,omitempty"`
	Over   []string          `json:"over,omitempty"`
	Files  map[string][]byte `json:"files"`
	Told   Edition           `json:"edition"`
	Format int               `json:"format"`
}

const copyFormat = 1

// maxCopy is more than the largest bundle takes in base64.
const maxCopy = MaxTotal*3/2 + 1<<20

var notInName = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// copyName returns the file for a layer: a name that people recognise, and that is unique.
func copyName(layer string) string {
	h := sha256.Sum256([]byte(layer))
	plain := notInName.ReplaceAllString(layer, "-")
	return plain[:min(len(plain), 60)] + "-" + hex.EncodeToString(h[:6]) + ".rules"
}

// checksum returns a hash of everything that is read from a copy.
func (s *savedBundle) checksum() string {
	plain := *s
	plain.Sum = ""
	text, err := json.Marshal(plain) // maps are in order
	if err != nil {
		return ""
	}
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

// saveCopy writes b for a later process.
func saveCopy(folder, layer string, b *Bundle) error {
	s := savedBundle{Layer: layer, Main: b.Main, Over: b.Over, Files: b.Files, Told: b.Edition, Format: copyFormat}
	s.Sum = s.checksum()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(folder, copyName(layer)), text, 0o600)
}

// loadCopy reads what saveCopy wrote. The error is fs.ErrNotExist if it did not.
func loadCopy(folder, layer string) (*Bundle, error) {
	name := filepath.Join(folder, copyName(layer))
	text, err := bounded.ReadFile(name, maxCopy)
	if err != nil {
		return nil, err
	}
	var s savedBundle
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b := &Bundle{Edition: s.Told, Main: s.Main, Over: s.Over, Files: s.Files}
	switch err := b.Check(); {
	case s.Format != copyFormat:
		return nil, fmt.Errorf("%s: it is of another version (%d)", name, s.Format)
	case s.Layer != layer:
		return nil, fmt.Errorf("%s: it is of another source: %s", name, s.Layer)
	case s.Sum != s.checksum():
		return nil, fmt.Errorf("%s: it is damaged", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// load returns the last good bundle of a layer; nil if there is no copy.
func (c *copies) load(layer string, log *slog.Logger) *Bundle {
	for _, folder := range []string{c.handed, c.folder} {
		if folder == "" {
			continue
		}
		b, err := loadCopy(folder, layer)
		if err == nil {
			return b
		}
		if !errors.Is(err, fs.ErrNotExist) {
			log.Error("the last good copy of rules cannot be used", "source", layer, "err", err)
		}
	}
	return nil
}

// keepCopies writes the bundles in force that came from their source.
func (r *reloader) keepCopies() {
	if r.copies.folder == "" {
		return
	}
	var failed error
	for i := range r.parts {
		p := &r.parts[i]
		if p.bundle == nil || p.copied || r.copies.saved[r.layers[i].name()] == p.bundle {
			continue
		}
		if err := saveCopy(r.copies.folder, r.layers[i].name(), p.bundle); err != nil {
			failed = err
			continue
		}
		r.copies.saved[r.layers[i].name()] = p.bundle
	}
	text := ""
	if failed != nil {
		text = failed.Error()
	}
	if text != "" && text != r.copies.told {
		r.log.Error("the copy of rules could not be written: without their source, a restart has no rules", "err", failed)
	}
	r.copies.told = text
}
