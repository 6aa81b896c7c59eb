package apikey

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/durable"
)

// ErrUnknown is returned by [Revoke] when no key has the name, ErrTaken by [Add] when one
// has.
var (
	ErrUnknown = errors.New("there is no key of that name")
	ErrTaken   = errors.New("there is a key of that name")
)

// Attribute is the value of a column.
type Attribute struct{ Column, Value string }

// New returns a new random key of 130 bits.
func New() string { return "tg_" + rand.Text() }

// ReadFile reads a file of keys.
func ReadFile(file string) (*Table, error) {
	_, t, err := read(file)
	return t, err
}

// Text reads the text of a file of keys, up to MaxFile.
func Text(file string) ([]byte, error) { return bounded.ReadFile(file, MaxFile) }

func read(file string) ([]byte, *Table, error) {
	text, err := Text(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read the API keys: %w", err)
	}
	t, problems := Parse(file, text)
	if t == nil {
		return nil, nil, problems
	}
	return text, t, nil
}

// Add appends a line for a key to a file, which is created if it does not exist. The other lines
// stay as they are.
func Add(file, key, name string, now time.Time, attributes []Attribute) error {
	return edit(file, func(text []byte, t *Table) ([]byte, error) {
		columns := []string{hashColumn, nameColumn, createdColumn}
		if t == nil {
			for _, a := range attributes {
				columns = append(columns, a.Column)
			}
			text = line(columns)
		} else if t.find(name) != nil {
			return nil, fmt.Errorf("%w: %q; revoke it first, or choose another name", ErrTaken, name)
		} else {
			columns = t.header
		}
		cells := make([]string, len(columns))
		put := func(column, value string) bool {
			i := slices.Index(columns, column)
			if i >= 0 {
				cells[i] = value
			}
			return i >= 0
		}
		put(createdColumn, now.UTC().Format(time.RFC3339))
		for _, a := range attributes {
			if !put(a.Column, a.Value) {
				return nil, fmt.Errorf("the file has no column %s: add it to the end of the first line, %s", diag.Quote(a.Column), diag.Quote(strings.Join(append(slices.Clone(columns), a.Column), ",")))
			}
		}
		put(hashColumn, Sum(key))
		put(nameColumn, name)
		if len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		return append(text, line(cells)...), nil
	})
}

// line returns cells as a line of CSV.
func line(cells []string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(cells) // a buffer takes everything
	w.Flush()
	text := b.Bytes()
	if text[0] == '#' { // without quotes, the line would be a comment
		end := bytes.IndexAny(text, ",\n")
		return slices.Concat([]byte(`"`), text[:end], []byte(`"`), text[end:])
	}
	return text
}

// Revoke removes the line of a key from a file.
func Revoke(file, name string) error {
	return edit(file, func(text []byte, t *Table) ([]byte, error) {
		if t == nil {
			return nil, fmt.Errorf("read the API keys: %w", &fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist})
		}
		r := t.find(name)
		if r == nil {
			if near := diag.Nearest(name, t.names()); near != "" {
				return nil, fmt.Errorf("%w: %q; did you mean %q?", ErrUnknown, name, near)
			}
			return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
		}
		lines := slices.Collect(bytes.Lines(text))
		return slices.Concat(slices.Delete(lines, r.line-1, r.line)...), nil
	})
}

func (t *Table) names() []string {
	names := make([]string, len(t.rows))
	for i := range t.rows {
		names[i] = t.rows[i].Name
	}
	return names
}

// edit replaces the content of a file by the result of change. Concurrent editors wait; readers see
// the old or the new file as a whole. The table is nil if there is no file. A result that could not
// be read again is not written.
func edit(file string, change func([]byte, *Table) ([]byte, error)) error {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // keep a link, and replace its target
	}
	unlock, err := lock(file + ".lock")
	if err != nil {
		return fmt.Errorf("lock the API keys: %w", err)
	}
	defer unlock()
	text, t, err := read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if text, err = change(text, t); err != nil {
		return err
	}
	if t, problems := Parse(file, text); t == nil {
		return problems
	}
	if err := replace(file, text); err != nil {
		return fmt.Errorf("write the API keys: %w", err)
	}
	return nil
}

// replace writes a file. Only its owner may read it, and its group if only owner and group could
// read the old file.
func replace(file string, text []byte) error {
	mode := fs.FileMode(0o600)
	if old, err := os.Stat(file); err == nil && old.Mode().Perm()&0o077 == 0o040 {
		mode = 0o640
	}
	return durable.WriteFile(file, text, mode)
}
