package config

import (
	"io/fs"
	"path/filepath"
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// checkWritten reports a file that is written for one setting and also named by another: each would
// ruin what the other has in it.
func (l *loader) checkWritten() {
	users := make(map[string]string) // the first setting of each file
	if l.config.File != "" {
		users[absolute(l.config.File)] = "the configuration itself"
	}
	for _, written := range []bool{false, true} { // files that are read, and then those that are written
		for _, s := range table {
			if s.file == nothing || s.file.written() != written || !l.sound(s.path) {
				continue
			}
			for _, name := range s.slot.write(l.config) {
				if !l.isFile(name) {
					continue
				}
				for _, suffix := range append([]string{""}, s.beside...) {
					at := absolute(name) + suffix
					user, taken := users[at]
					if taken && written {
						l.clash(s.path, diag.Error, quote(s.path)+" is written to a file that has another use, for "+user+": "+quote(name+suffix), "give it a file of its own")
					}
					if !taken {
						users[at] = quote(s.path)
					}
				}
			}
		}
	}
}

// isFile reports whether the value of a setting is the name of a file or folder, and not a word, a
// URL, or a device or pipe, to which several may write.
func (l *loader) isFile(name string) bool {
	if slices.Contains([]string{Stdout, Stderr, Off, SystemCA}, name) || IsSource(name) {
		return false
	}
	info, err := l.o.Stat(name)
	return err != nil || info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe) == 0
}

// absolute returns a path in the form in which paths can be compared.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return filepath.Clean(path)
}
