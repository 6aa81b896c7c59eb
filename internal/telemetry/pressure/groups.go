package pressure

import (
	"io/fs"
	"path"
	"strings"
)

// groupFolders returns the folders of the cgroups that this process is in, the outermost first: those of
// version 2, and those of version 1 for a controller.
func groupFolders(root fs.FS, controller string) (dirs []string) {
	const top = "sys/fs/cgroup"
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path, as in 0::/app.slice or 4:cpu,cpuacct:/docker/1f
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, name, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case controllers == "":
			dirs = append(dirs, below(top, name)...)
		case hasWord(controllers, controller):
			dirs = append(dirs, below(path.Join(top, controllers), name)...)
		}
	}
	return dirs
}

// below returns the folder top and those on the path from it to name.
func below(top, name string) []string {
	dirs := []string{top}
	for at := top; name != ""; {
		var next string
		next, name, _ = strings.Cut(strings.Trim(name, "/"), "/")
		if next == "" || next == ".." { // a group outside of what can be seen
			break
		}
		at = path.Join(at, next)
		dirs = append(dirs, at)
	}
	return dirs
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// readText returns what is in a small file, "" if it cannot be read.
func readText(root fs.FS, dir, name string) string {
	text, err := fs.ReadFile(root, path.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
