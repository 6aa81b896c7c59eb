package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"tidegate.dev/tidegate/rules/source"
)

const (
	// MediaType is the media type of a bundle.
	MediaType = "application/vnd.tidegate.rules+json"
	// MaxBody is the maximum length of an encoded bundle: escaping makes it longer than its files.
	MaxBody = 2*source.MaxTotal + 1<<20
)

// wire is a bundle as JSON.
type wire struct {
	Revision string            `json:"revision"`
	Hash     string            `json:"hash,omitempty"`
	Main     string            `json:"main,omitempty"`
	Over     []string          `json:"over,omitempty"`
	Files    map[string]string `json:"files"`
	Author   string            `json:"author,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	At       time.Time         `json:"at,omitzero"`
}

// Encode returns a bundle as JSON. The error is [ErrNotText] if a file is not UTF-8.
func Encode(b *source.Bundle) ([]byte, error) {
	w := wire{
		Revision: b.Revision, Hash: b.Hash, Main: b.Main, Over: b.Over, Files: make(map[string]string, len(b.Files)),
		Author: b.Author, Reason: b.Reason, At: b.At,
	}
	for name, text := range b.Files {
		if !utf8.Valid(text) || !utf8.ValidString(name) {
			return nil, fmt.Errorf("%q: %w", name, ErrNotText)
		}
		w.Files[name] = string(text)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(w)
	return out.Bytes(), err
}

// ErrNotText is returned for files that are not UTF-8. Rule files and lists always are.
var ErrNotText = errors.New("the file is not UTF-8 text")

// Decode decodes a bundle that Encode or another program encoded. It rejects what a source would
// not have: names that lead out of it, too many files, too large ones.
func Decode(text []byte) (*source.Bundle, error) {
	var w wire
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, fmt.Errorf("this is not a bundle of rules: %w", err)
	}
	if len(w.Files) == 0 {
		return nil, errors.New(`this is not a bundle of rules: it has no files; want {"revision": "1", "main": "rules.yaml", "files": {"rules.yaml": "version: 1\n..."}}`)
	}
	b := &source.Bundle{
		Edition: source.Edition{Revision: w.Revision, Hash: w.Hash, Author: w.Author, Reason: w.Reason, At: w.At},
		Main:    w.Main, Over: w.Over, Files: make(map[string][]byte, len(w.Files)),
	}
	for name, text := range w.Files {
		b.Files[name] = []byte(text)
	}
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("this bundle of rules cannot be used: %w", err)
	}
	for _, main := range b.Mains() {
		if _, has := w.Files[main]; main != "" && !strings.HasSuffix(main, "/") && !has {
			return nil, fmt.Errorf("this bundle of rules cannot be used: it begins with %q, and does not have that file", main)
		}
	}
	return b, nil
}

// Inside reports whether name is a clean path of a file within the bundle.
func Inside(name string) bool { return fs.ValidPath(name) && name != "." }
