package config

import (
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
		name, m := headerName.read(w)
		if m.any() || name == "" {
			return "", m
		}
		w.text = strings.TrimSpace(file)
		file, m = path.read(w)
		return name + "=" + file, m
	},
	write: func(v string) string { return v },
}

// checkDefer tells of settings that do nothing.
func (l *loader) checkDefer() {
	if l.config.Defer.Path == l.config.Usage && l.config.Usage != "" && l.sound("defer.path", "usage") {
		l.clash(l.either("defer.path", "usage"), diag.Error, "`defer.path` and `usage` are the same path", "give them different paths")
	}
}
