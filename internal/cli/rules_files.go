package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxWatched is how many files below a folder are looked at.
const maxWatched = 100_000

// filesMark returns a text that changes when anything below a folder, or beside a file, does, as
// far as names, sizes, times and modes tell. Tests count, too: they decide what is published.
func filesMark(name string) (string, error) {
	root := name
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		root = filepath.Dir(name)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil { // WalkDir does not follow them
		return "", err
	}
	h := sha256.New()
	count := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was there a moment ago: the next look sees that
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		if count++; count > maxWatched {
			return fmt.Errorf("%s has more than %d files: name the folder of the rules alone", root, maxWatched)
		}
		info, err := os.Stat(path) // of what a link leads to
		if err != nil {
			fmt.Fprintf(h, "%q gone\n", path)
			return nil
		}
		fmt.Fprintf(h, "%q %d %d %s\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return nil
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
