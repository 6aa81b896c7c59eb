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

// copies are the last good bundles of origins, on disk, and what to do where there are none.
type copies struct {
	folder       string        // "" means they are not kept
	handed       string        // where a predecessor has left its own; "" means nowhere
	startTimeout time.Duration // how long the start waits for an origin that has no copy
	openStart    bool
	none         func() error       // puts it into force that there are no rules
	told         string             // the last error that was logged
	saved        map[string]*Bundle // by layer
}

// savedBundle is a Bundle as it is written.
type savedBundle struct {
	Layer  string            `json:"layer"`
	Sum    string            `json:"sum"` // of the files: what is cut short or changed is not used
	Main   string            `json:"main,omitempty"`
	Over   []string          `json:"over,omitempty"`
	Files  map[string][]byte `json:"files"`
	Told   Edition           `json:"edition"`
	Format int               `json:"format"`
}

const copyFormat = 1

// maxCopy is above what the largest bundle takes in base64.
const maxCopy = MaxTotal*3/2 + 1<<20

var notInName = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// copyName is the file of a layer: one that people recognise, and no other layer has.
func copyName(layer string) string {
	h := sha256.Sum256([]byte(layer))
	plain := notInName.ReplaceAllString(layer, "-")
	return plain[:min(len(plain), 60)] + "-" + hex.EncodeToString(h[:6]) + ".rules"
}

// checksum is over all that a copy is read for.
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

// load returns what was in force of a layer, nil if nobody knows.
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

// keepCopies writes what is in force and came from its source.
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
