package config

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// headerFile is a header and the file with its value: NAME=FILE.
var headerFile = codec[string]{
	read: func(w rawValue) (string, mistake) {
		name, file, ok := strings.Cut(w.text, "=")
		if !ok || strings.TrimSpace(file) == "" {
			return "", advised("names no file: "+quote(w.text), "write a header and a file with its value, as in `Authorization=replay.token`")
		}
		w.text = strings.TrimSpace(name)
		if w.text == "" {
			return "", advised("names no header: "+quote("="+file), "write a header and a file with its value, as in `Authorization=replay.token`")
		}
		name, m := headerName.read(w)
		if m.any() {
			return "", m
		}
		w.text = strings.TrimSpace(file)
		file, m = path.read(w)
		return name + "=" + file, m
	},
	write: func(v string) string { return v },
}

// checkDefer reports settings that contradict each other.
func (l *loader) checkDefer() {
	l.checkCredentials()
	if l.config.Defer.Path == l.config.Usage && l.config.Usage != "" && l.sound("defer.path", "usage") {
		l.clash(l.either("defer.path", "usage"), diag.Error, "`defer.path` and `usage` are the same path", "give them different paths")
	}
}

// checkCredentials reports headers that are listed twice.
func (l *loader) checkCredentials() {
	const path = "defer.credentials"
	var seen []string
	for i, item := range l.config.Defer.Credentials {
		name, _, _ := strings.Cut(item, "=")
		if slices.ContainsFunc(seen, func(s string) bool { return strings.EqualFold(s, name) }) && l.sound(path) {
			l.clashItem(path, i, diag.Error, quote(path)+" has "+quote(name)+" twice", "keep one of them")
		}
		seen = append(seen, name)
	}
}
