package rulefile

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	slashpath "path"
	"path/filepath"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Layer is one of several sources of rules that [Join] reads as one. What it includes and the
// files of its lists are in the same layer.
type Layer struct {
	// Name is a file or folder on disk; with Files, it is what problems call the layer.
	Name string
	// Files by their paths, with slashes and without a slash in front; nil reads from disk.
	Files map[string][]byte
	// Main is the file to begin with: a rule file, or a folder with a slash at the end, which is
	// read like one on disk. "" is the top folder.
	Main string
}

// onDisk reports whether the files of l are read from disk.
func (l *Layer) onDisk() bool { return l.Files == nil }

// FileName returns the name of the file at path in problems and in [File.Files].
func (l *Layer) FileName(path string) string {
	if l.onDisk() {
		return path
	}
	return l.Name + ": " + path
}

// Path returns the path within l of a file, by its FileName.
func (l *Layer) Path(fileName string) string {
	if l.onDisk() {
		return fileName
	}
	return strings.TrimPrefix(fileName, l.Name+": ")
}

// clean returns the canonical name of a file.
func (l *Layer) clean(name string) string {
	if l.onDisk() {
		return filepath.Clean(name)
	}
	return l.FileName(slashpath.Clean(l.Path(name)))
}

// beside returns the name of the file that path means, as seen from the folder of file. within is
// false if that is outside of l; on disk it is always true.
func (l *Layer) beside(file, path string) (name string, within bool) {
	if l.onDisk() {
		if filepath.IsAbs(path) {
			return filepath.Clean(path), true
		}
		return filepath.Join(filepath.Dir(file), path), true
	}
	joined := slashpath.Join(slashpath.Dir(l.Path(file)), path)
	return l.FileName(joined), !slashpath.IsAbs(path) && joined != ".." && !strings.HasPrefix(joined, "../")
}

// read returns the content of a file.
func (l *Layer) read(name string, onDisk func(string) ([]byte, error)) ([]byte, error) {
	if l.onDisk() {
		return onDisk(name)
	}
	text, ok := l.Files[l.Path(name)]
	switch {
	case !ok:
		return nil, &fs.PathError{Op: "read", Path: name, Err: errNotInLayer}
	case len(text) > MaxBytes:
		return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	return text, nil
}

var (
	errNotInLayer = errors.New("the source has no such file")
	errTooLarge   = errors.New("is larger than 16 MiB")
)

// glob returns the names of the files that match a pattern, sorted.
func (l *Layer) glob(pattern string, onDisk func(string) ([]string, error)) (found []string, err error) {
	if l.onDisk() {
		return onDisk(pattern)
	}
	pattern = l.Path(pattern)
	for _, path := range slices.Sorted(maps.Keys(l.Files)) {
		ok, err := slashpath.Match(pattern, path)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, l.FileName(path))
		}
	}
	return found, nil
}

// folder returns the path of the folder to read if l is one, "" if it is a rule file.
func (l *Layer) folder() string {
	switch {
	case !l.onDisk() && l.Main == "":
		return "."
	case !l.onDisk() && strings.HasSuffix(l.Main, "/"):
		return slashpath.Clean(l.Main)
	case !l.onDisk():
		return ""
	}
	if info, err := os.Stat(l.Name); err == nil && info.IsDir() {
		return l.Name
	}
	return ""
}

// list returns the names of the rule files in a folder, sorted.
func (l *Layer) list(folder string) (found []string, err error) {
	if !l.onDisk() {
		for _, path := range slices.Sorted(maps.Keys(l.Files)) {
			if slashpath.Dir(path) == folder && InFolder(slashpath.Base(path)) {
				found = append(found, l.FileName(path))
			}
		}
		return found, nil
	}
	entries, err := os.ReadDir(folder)
	for _, e := range entries { // in order of name
		if !e.IsDir() && InFolder(e.Name()) {
			found = append(found, filepath.Join(folder, e.Name()))
		}
	}
	return found, err
}

// readLayer reads all files of the current layer.
func (d *decoder) readLayer() {
	l := d.layer()
	if folder := l.folder(); folder != "" {
		d.readFolder(folder)
		return
	}
	name := l.Name
	if !l.onDisk() {
		name = l.FileName(l.Main)
	}
	d.readFile(name, diag.Pos{File: name}, nil)
}

// layer returns the current layer.
func (d *decoder) layer() *Layer { return &d.layers[d.at] }

// inLayer returns the name of the file at path as seen from file. If it is outside of the layer, it
// reports that and returns false.
func (d *decoder) inLayer(file, path string, at diag.Pos) (string, bool) {
	name, ok := d.layer().beside(file, path)
	if !ok {
		d.fail(at, diag.Quote(path)+" is outside of "+d.layer().Name+", and rules use files of their own source only",
			"put the file into the same source, and name it by its path from the folder of "+diag.Quote(d.layer().Path(file)))
	}
	return name, ok
}
