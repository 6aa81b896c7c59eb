package history

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"tidegate.dev/tidegate/rules/source"
)

// Bounds of all stored contents together, compressed, and of a single one, uncompressed.
const (
	maxContents = 32 << 20
	maxContent  = 64 << 20
)

// kept is the sets and the contents of their files, each content once.
type kept struct {
	Sets     []set             `json:"sets"`     // the newest first
	Contents map[string][]byte `json:"contents"` // compressed, by the hash of the content
}

// set is a rule set that was in force.
type set struct {
	Hash     string            `json:"hash"`
	Revision string            `json:"revision,omitempty"`
	Author   string            `json:"author,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	At       time.Time         `json:"at"`
	Main     string            `json:"main,omitempty"`
	Over     []string          `json:"over,omitempty"`
	Files    map[string]string `json:"files,omitempty"` // hashes of contents by name; nil means they could not be kept
}

// add puts b first, and drops the sets that there is no room for.
func (k *kept) add(b *source.Bundle) error {
	s := set{Hash: b.Hash, Revision: b.Revision, Author: b.Author, Reason: b.Reason, At: b.At, Main: b.Main, Over: b.Over, Files: make(map[string]string, len(b.Files))}
	contents := maps.Clone(k.Contents)
	if contents == nil {
		contents = make(map[string][]byte)
	}
	for name, text := range b.Files {
		sum := sha256.Sum256(text)
		id := hex.EncodeToString(sum[:])
		s.Files[name] = id
		if contents[id] == nil {
			packed, err := pack(text)
			if err != nil {
				return err
			}
			contents[id] = packed
		}
	}
	if len(b.Files) == 0 {
		s.Files = nil
	}
	k.Sets, k.Contents = slices.Insert(k.Sets, 0, s), contents
	k.Sets = k.Sets[:min(len(k.Sets), source.Kept)]
	for k.drop(); k.bytes() > maxContents; k.drop() {
		if len(k.Sets) == 1 {
			k.Sets[0].Files = nil
			continue
		}
		k.Sets = k.Sets[:len(k.Sets)-1]
	}
	return nil
}

// drop removes contents that no set uses.
func (k *kept) drop() {
	used := make(map[string]bool)
	for _, s := range k.Sets {
		for _, id := range s.Files {
			used[id] = true
		}
	}
	maps.DeleteFunc(k.Contents, func(id string, _ []byte) bool { return !used[id] })
}

func (k *kept) bytes() (n int) {
	for _, c := range k.Contents {
		n += len(c)
	}
	return n
}

func (s *set) edition() source.Edition {
	return source.Edition{Revision: s.Revision, Hash: s.Hash, Author: s.Author, Reason: s.Reason, At: s.At}
}

var errNoFiles = errors.New("its files could not be kept: they are too large, or named by absolute paths")

// bundle returns a set with its files; errNoFiles if they were not kept.
func (k *kept) bundle(s *set) (*source.Bundle, error) {
	if s.Files == nil {
		return nil, errNoFiles
	}
	b := &source.Bundle{Edition: s.edition(), Main: s.Main, Over: s.Over, Files: make(map[string][]byte, len(s.Files))}
	for name, id := range s.Files {
		text, err := unpack(k.Contents[id])
		if err != nil {
			return nil, fmt.Errorf("%s in the history: %w", name, err)
		}
		b.Files[name] = text
	}
	return b, nil
}

func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxContent+1))
	if err == nil && len(text) > maxContent {
		err = errors.New("it is too large")
	}
	return text, err
}
