// Package rulepack writes the files of a rule set as one text, a compressed tar archive, and
// reads such a text without trusting it: sizes, numbers and names are bounded. The same files
// make the same text.
//
// Start with [Write] and [Read].
package rulepack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Bounds of a rule set.
const (
	MaxFile  = 16 << 20 // bytes of one file
	MaxBytes = 64 << 20 // of all
	MaxFiles = 1000
	maxName  = 512 // bytes
)

// Check reports what keeps files from being a rule set: too many, too large, a name that
// leaves the folder.
func Check(files map[string][]byte) error {
	if len(files) > MaxFiles {
		return fmt.Errorf("%d files are more than a rule set may have: %d", len(files), MaxFiles)
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := CheckName(name); err != nil {
			return err
		}
		size := len(files[name])
		if total += size; size > MaxFile {
			return fmt.Errorf("%s is larger than %d MiB", name, MaxFile>>20)
		}
	}
	if total > MaxBytes {
		return fmt.Errorf("the files are larger than %d MiB together", MaxBytes>>20)
	}
	return nil
}

// CheckName reports whether a file of a rule set may have that name: a path with slashes,
// below the folder of the set.
func CheckName(name string) error {
	printable := strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
	if !fs.ValidPath(name) || name == "." || len(name) > maxName || !printable || strings.ContainsRune(name, '\\') {
		return fmt.Errorf("%.100q is not a name that a file of a rule set may have: want a path below its folder", name)
	}
	return nil
}

// Digest stands for files and which of them the layers begin with. It is the same on every
// machine.
func Digest(mains []string, files map[string][]byte) string {
	h := sha256.New()
	for _, main := range mains {
		fmt.Fprintf(h, "%q\n", main)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(files[name]))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Write returns files as one text.
func Write(files map[string][]byte) ([]byte, error) {
	if err := Check(files); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		head := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}
		if err := w.WriteHeader(head); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return nil, fmt.Errorf("pack a rule set: %w", err)
	}
	return b.Bytes(), nil
}

// errPack is returned for a text that Write did not write.
var errPack = errors.New("it is not a packed rule set")

// Read returns the files of a text that Write has written.
func Read(text []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPack, err)
	}
	// What headers and padding take is bounded as well.
	bounded := &io.LimitedReader{R: z, N: MaxBytes + MaxFiles*(4<<10) + 1}
	r := tar.NewReader(bounded)
	files := make(map[string][]byte)
	total := int64(0)
	for {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errPack, err)
		}
		if head.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("%w: %.100q is not a file", errPack, head.Name)
		}
		if err := CheckName(head.Name); err != nil {
			return nil, err
		}
		total += head.Size
		if _, twice := files[head.Name]; twice || head.Size > MaxFile || total > MaxBytes || len(files) == MaxFiles {
			return nil, fmt.Errorf("%w: %.100q is there twice, or one file too many, or too large", errPack, head.Name)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errPack, err)
		}
		files[head.Name] = data
	}
	// The sum of the whole is behind its end.
	if _, err := io.Copy(io.Discard, bounded); err != nil {
		return nil, fmt.Errorf("%w: %w", errPack, err)
	}
	if bounded.N <= 0 {
		return nil, fmt.Errorf("%w: it is too large", errPack)
	}
	return files, nil
}
