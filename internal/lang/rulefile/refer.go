package rulefile

import (
	"path"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Reference is another file that a rule file needs.
type Reference struct {
	Name    string // with slashes, relative to the same folder as the name of the rule file
	Pattern bool   // it stands for all files whose names match
	Rules   bool   // it is included, so it may need further files; a list does not
}

// Refers returns the files that the rule file called name needs: those it includes, and its
// lists. It is for sources that have to fetch each file. It reports no mistakes; they are
// found when the rules are read.
func Refers(name string, src []byte) []Reference {
	root, _ := yamltree.Parse(name, src)
	if root == nil || isDomain(root, diag.SplitLines(src)) {
		return nil
	}
	var all []Reference
	for _, f := range root.Fields {
		switch f.Key.Value {
		case "include":
			for _, text := range scalars(f.Value) {
				if !strings.Contains(text, "://") {
					all = append(all, Reference{besideSlash(name, text), strings.ContainsAny(text, "*?["), true})
				}
			}
		case "lists":
			for _, l := range f.Value.Fields {
				if file := listFile(l.Value); file != "" {
					all = append(all, Reference{Name: besideSlash(name, file)})
				}
			}
		}
	}
	return all
}

// scalars returns the text of n, or of the items of n.
func scalars(n *yamltree.Node) (all []string) {
	for _, item := range append([]*yamltree.Node{n}, n.Items...) {
		if text := strings.TrimSpace(item.Value); item.Kind == yamltree.Scalar && text != "" {
			all = append(all, text)
		}
	}
	return all
}

// listFile returns the file that a list is read from; "" if its values are in the rule file.
func listFile(n *yamltree.Node) string {
	for _, f := range n.Fields {
		if f.Key.Value == "file" && f.Value.Kind == yamltree.Scalar {
			return strings.TrimSpace(f.Value.Value)
		}
	}
	if file, ok := strings.CutPrefix(strings.TrimSpace(n.Value), "file "); ok && n.Kind == yamltree.Scalar {
		return strings.TrimSpace(file)
	}
	return ""
}

// besideSlash returns the path of name as seen from the folder of file, like Layer.beside for
// files that are not on disk.
func besideSlash(file, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(path.Dir(file), name)
}
