package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mostLinks bounds the links that are followed on a path; the kernel follows as many.
const mostLinks = 40

// folders returns the directories in which a change can make name refer to something else: the one
// it is in, the one of every link on the way, and name itself if it is a folder. If a step of the
// path is missing, the last is the directory in which it is missing. They contain no links, so each
// has one name only.
func folders(name string) []string {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil
	}
	var found []string
	add := func(dir string) {
		if !slices.Contains(found, dir) {
			found = append(found, dir)
		}
	}
	root := filepath.VolumeName(abs) + string(filepath.Separator)
	dir, steps, links := root, split(abs), 0
	for len(steps) > 0 {
		step := steps[0]
		steps = steps[1:]
		if step == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		next := filepath.Join(dir, step)
		info, err := os.Lstat(next)
		if err != nil {
			add(dir)
			return found
		}
		if info.Mode()&os.ModeSymlink == 0 {
			if len(steps) == 0 {
				add(dir)
			}
			dir = next
			continue
		}
		add(dir)
		target, err := os.Readlink(next)
		if links++; err != nil || links > mostLinks {
			return found
		}
		if filepath.IsAbs(target) {
			dir = root
		}
		steps = append(split(target), steps...)
	}
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		add(dir)
	}
	return found
}

// split returns the steps of a path. The path must not be cleaned first: ".." after a link leaves
// the folder that the link points to.
func split(path string) []string {
	path = path[len(filepath.VolumeName(path)):]
	return strings.FieldsFunc(path, func(c rune) bool { return c < 128 && os.IsPathSeparator(uint8(c)) })
}
