package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// named returns the configuration file and where it was named; "" if it was not.
func (l *loader) named() (file string, at origin) {
	switch flags := l.o.Flags.file; {
	case l.o.File != "":
		at.pos.File = l.o.File
		return l.o.File, at
	case len(flags) > 0:
		at = outside("--config", strings.Join(flags, ","))
		if len(flags) > 1 {
			l.tell(at, diag.Error, fmt.Sprintf("there are two configuration files: %s and %s", quote(flags[0]), quote(flags[1])), "name one of them")
		}
		return flags[0], at
	}
	if file := l.environment()[envFile]; file != "" {
		return file, outside(envFile, file)
	}
	return "", at
}

// takeFile reads the configuration file and takes what it sets.
func (l *loader) takeFile() {
	file, at := l.named()
	optional := at == origin{}
	if optional {
		file = defaultFile
	}
	src, err := l.o.ReadFile(file)
	switch {
	case file == "":
		l.tell(at, diag.Error, "no file is named", "write `--config="+defaultFile+"`, or take the flag out")
		return
	case errors.Is(err, fs.ErrNotExist) && optional:
		return
	case err != nil:
		hint := "name another, or none: " + quote(defaultFile) + " is read if it is there"
		if optional {
			at.pos.File, hint = file, "name another with `--config`"
		}
		l.tell(at, diag.Error, "cannot read the configuration file "+quote(file)+": "+diag.Reason(err), hint)
		return
	}
	l.config.File = file
	if onlyComments(src) {
		return
	}
	l.lines, l.broken = diag.SplitLines(src), make(map[int]bool)
	root, problems := yamltree.Parse(file, src)
	for _, p := range problems {
		l.broken[p.Line] = true
		if hasSecretField(l.lines.At(p.Line)) {
			l.hidden[p.Line] = true
			p.Message, p.Hint = withoutQuoted(p.Message), withoutQuoted(p.Hint)
		}
		l.problems.Add(p)
	}
	switch {
	case root == nil:
	case root.Kind != yamltree.Map:
		l.tell(l.at(root), diag.Error, "a configuration is a map of fields, and this is "+root.What(), "write a field a line, as in `rules: rules.yaml`")
	default:
		l.section(root, "")
	}
}

// onlyComments reports whether src has nothing but comments: such a file sets nothing.
func onlyComments(src []byte) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(src, []byte("\ufeff"))) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// at returns the place of n.
func (l *loader) at(n *yamltree.Node) origin { return origin{n.Pos, l.lines.At(n.Pos.Line)} }

// section takes the fields of a map; prefix is its path and a dot, "" for all.
func (l *loader) section(n *yamltree.Node, prefix string) {
	for _, f := range n.Fields {
		path := prefix + f.Key.Value
		s, inner := lookup(path), len(fields(path+".")) > 0
		switch {
		case strings.Contains(f.Key.Value, ".") || s == nil && !inner:
			l.unknown(f, prefix)
		case f.Value.Kind == yamltree.Null:
			l.tell(l.at(f.Key), diag.Error, "nothing is written after "+quote(f.Key.Value+":"), "write a value, or take the field out")
		case inner && s != nil && f.Value.Kind == yamltree.Map:
			l.choose(s, f.Value)
		case inner && s == nil && f.Value.Kind != yamltree.Map:
			l.tell(l.at(f.Value), diag.Error, quote(path)+" is a map of fields, and this is "+f.Value.What(), "write "+quote(firstBelow(path).nested()))
		case inner && s == nil:
			l.section(f.Value, path+".")
		default:
			l.field(s, f.Value)
		}
	}
}

// field takes the value of a setting.
func (l *loader) field(s *setting, n *yamltree.Node) {
	items := []*yamltree.Node{n}
	if s.slot.many && n.Kind == yamltree.List {
		items = n.Items
	}
	var values []rawValue
	if s.pairs && n.Kind == yamltree.Map {
		items, values = nil, l.pairs(s, n)
	}
	for _, item := range items {
		if s.item != "" && item.Kind == yamltree.Map {
			item = l.unwrap(s, item)
		}
		if len(s.entry) > 0 && item.Kind == yamltree.Map {
			if value, ok := l.entry(s, item); ok {
				values = append(values, value)
			}
			continue
		}
		if item != nil && item.Kind != yamltree.Scalar {
			l.misshapen(s, item)
			item = nil
		}
		if item != nil {
			values = append(values, rawValue{l.at(item), item.Value, filepath.Dir(l.config.File)})
		}
	}
	if s.slot.many || len(values) > 0 {
		l.take(s, values, l.at(n))
	}
	if len(values) < max(len(items), len(n.Fields)) {
		l.config.origins[s.path], l.wrong[s.path] = l.at(n), true
	}
}

// pairs returns the fields of a map as items KEY=VALUE. It reports fields that have no single value,
// and leaves them out.
func (l *loader) pairs(s *setting, n *yamltree.Node) (values []rawValue) {
	for _, f := range n.Fields {
		if f.Value.Kind != yamltree.Scalar {
			l.misshapen(s, f.Value)
			continue
		}
		values = append(values, rawValue{l.at(f.Value), f.Key.Value + "=" + f.Value.Value, filepath.Dir(l.config.File)})
	}
	return values
}

// entry returns an item that is a map as KEY=VALUE, or KEY if it has no value.
func (l *loader) entry(s *setting, n *yamltree.Node) (_ rawValue, ok bool) {
	values := make(map[string]string)
	ok = true
	for _, f := range n.Fields {
		switch {
		case !slices.Contains(s.entry, f.Key.Value):
			l.tell(l.at(f.Key), diag.Error, "unknown field "+quote(f.Key.Value)+" in an item of "+quote(s.path), s.shape)
			ok = false
		case f.Value.Kind == yamltree.Null: // as if it were not there
		case f.Value.Kind != yamltree.Scalar:
			l.misshapen(s, f.Value)
			ok = false
		default:
			values[f.Key.Value] = f.Value.Value
		}
	}
	text := values[s.entry[0]]
	if value, given := values[s.entry[1]]; given {
		text += "=" + value
	}
	if ok && text == "" {
		l.tell(l.at(n), diag.Error, "an item of "+quote(s.path)+" is empty", s.shape)
		ok = false
	}
	return rawValue{l.at(n), text, filepath.Dir(l.config.File)}, ok
}

// misshapen reports a map or a list that stands where a value belongs.
func (l *loader) misshapen(s *setting, n *yamltree.Node) {
	what, hint := quote(s.path), "write "+quote(s.leaf()+": "+s.example)
	if s.slot.many && !s.urls {
		what, hint = "an item of "+what, "write "+quote(s.leaf()+": ["+s.example+"]")
	}
	if s.shape != "" {
		hint = s.shape
	}
	l.tell(l.at(n), diag.Error, what+" is a single value, and this is "+n.What(), hint)
}

// unwrap returns the value of the only field that an item may have. If it has no value, unwrap
// reports that and returns nil.
func (l *loader) unwrap(s *setting, n *yamltree.Node) (value *yamltree.Node) {
	for _, f := range n.Fields {
		if f.Key.Value != s.item {
			l.unknown(f, s.path+".")
		} else if f.Value.Kind != yamltree.Null {
			value = f.Value
		}
	}
	if value == nil {
		l.tell(l.at(n), diag.Error, "an item of "+quote(s.path)+" needs "+quote(s.item), "write "+quote(s.example))
	}
	return value
}
