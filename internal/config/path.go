package config

import (
	"errors"
	"io/fs"
	"net/url"
	slashpath "path"
	"path/filepath"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/apikey"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/jwt"
)

// fileNeed says what must be at a path, or where it leads, for a setting to work.
type fileNeed uint8

const (
	nothing      fileNeed = iota
	aFile                 // the file itself
	fileOrFolder          // either of them
	itsFolder             // the folder that it will be written to
	newFolder             // the folder that it will be made in
)

// written reports whether what a path names is written.
func (n fileNeed) written() bool { return n == itsFolder || n == newFolder }

// within returns path, which is taken relative to dir unless it is absolute.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// path is the codec of the name of a file or folder.
var path = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if strings.Contains(w.text, "://") {
			return "", advised("is a URL, and only files are read yet: "+quote(w.text), "write it into a file, and name that")
		}
		return within(w.dir, w.text), mistake{}
	},
	write: func(v string) string { return v },
}

// keySet is the name of a file, or a URL that keys can be fetched from, whose query is not shown.
var keySet = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if !jwt.IsURL(w.text) {
			return path.read(w)
		}
		if err := jwt.CheckURL(w.text); err != nil {
			return "", advised("cannot be used: "+err.Error(), "write the `jwks_uri` of the issuer, as in `jwks: https://login.example.com/.well-known/jwks.json`")
		}
		return w.text, mistake{}
	},
	write: func(v string) string {
		if jwt.IsURL(v) {
			return starURL(v)
		}
		return v
	},
}

// keyPlace is where a request has its API key.
var keyPlace = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if _, err := apikey.ParseFrom(w.text); err != nil {
			return "", advised("is not a place where a key is: "+quote(w.text), err.Error())
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

// output is the codec of where a log goes: a stream of the process, nowhere, or a file.
var output = codec[string]{
	read: func(w rawValue) (string, mistake) {
		words := []string{Stdout, Stderr, Off}
		if slices.Contains(words, w.text) {
			return w.text, mistake{}
		}
		// A bare word is more often a slip than the name of a file.
		if !strings.ContainsAny(w.text, "/.") {
			m := notOneOf(w.text, words)
			m.hint += ", or a file such as `./" + w.text + "`"
			return "", m
		}
		v, m := path.read(w)
		if !strings.ContainsAny(v, "/.") { // it would be taken for such a word
			v = "." + string(filepath.Separator) + v
		}
		return v, m
	},
	write: func(v string) string { return v },
}

// urlPath is the path of a request, which may have a query.
var urlPath = codec[string]{
	read: func(w rawValue) (string, mistake) {
		u, err := url.ParseRequestURI(w.text)
		switch {
		case err == nil && u.Host != "" && u.Path != "":
			return "", wrong("is a whole URL, and each upstream is asked for it: "+quote(w.text), u.RequestURI())
		case !strings.HasPrefix(w.text, "/") && !strings.Contains(w.text, ":"):
			return "", wrong("does not begin with a slash: "+quote(w.text), "/"+w.text)
		case err != nil || !strings.HasPrefix(w.text, "/") || strings.ContainsAny(w.text, " #"):
			return "", advised("is not the path of a request: "+quote(w.text), "")
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

// findFiles reports files that settings name and that are not there, or cannot be what they are
// named for.
func (l *loader) findFiles() {
	for _, s := range table {
		names := s.slot.write(l.config)
		if s.file == nothing || len(names) == 0 || l.wrong[s.path] || slices.Contains([]string{Stdout, Stderr, Off}, names[0]) {
			continue
		}
		for _, name := range names {
			if jwt.IsURL(name) || s.urls && IsSource(name) || s.path == "xds.tls.ca" && name == SystemCA {
				continue
			}
			l.findFile(s, name)
		}
	}
}

// findFile reports that what must be at name, or the folder of what will be written there, is missing
// or something else.
func (l *loader) findFile(s *setting, name string) {
	if s.file.written() {
		if l.tellOccupied(s, name); l.wrong[s.path] {
			return
		}
		name = filepath.Dir(name)
	}
	info, err := l.o.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.about(s, "leads to what does not exist: "+quote(name), s.whereTo(l.config.origins[s.path]))
	case err != nil:
		l.about(s, "leads to what cannot be read: "+quote(name)+": "+diag.Reason(err), "")
	case s.file == aFile && info.IsDir():
		l.about(s, "is a folder, and a file is expected: "+quote(name), "")
	case s.file.written() && info.Mode().IsRegular():
		l.about(s, "would be in a folder that is a file: "+quote(name), "")
	}
}

// tellOccupied reports what is at a path that will be written and must not be replaced: a folder in
// the place of a file, a file in the place of a folder, or a device, pipe or socket. Only the access
// log can go to one of the latter.
func (l *loader) tellOccupied(s *setting, name string) {
	const special = fs.ModeDevice | fs.ModeNamedPipe | fs.ModeSocket
	info, err := l.o.Stat(name)
	switch {
	case err != nil:
	case s.file == itsFolder && info.IsDir():
		l.about(s, "is a folder, and a file is expected: "+quote(name), "name a file in it")
	case s.file == newFolder && info.Mode().IsRegular():
		l.about(s, "is a file, and a folder is expected: "+quote(name), "")
	case info.Mode()&special != 0 && s.path != "log.access":
		l.about(s, "is a device, a pipe or a socket, and a file is expected: "+quote(name), "name a file, or take the setting out")
	}
}

// whereTo returns the hint for a path that leads nowhere.
func (s *setting) whereTo(at origin) string {
	switch {
	case s.file.written():
		return "make the folder first"
	case at.inFile():
		return "what is written in the file is relative to its folder"
	}
	return "what a flag or variable says is relative to the working folder"
}

// ownPath is the codec of a path that the gateway itself answers. It is plain, since it is compared
// with the paths of requests as text.
var ownPath = codec[string]{
	read: func(w rawValue) (string, mistake) {
		switch {
		case !strings.HasPrefix(w.text, "/"):
			return "", wrong("does not begin with a slash: "+quote(w.text), "/"+w.text)
		case w.text == "/" || slashpath.Clean(w.text) != w.text || strings.ContainsFunc(w.text, notInPath):
			return "", advised("is not a plain path: "+quote(w.text), "write one of letters, digits and -._~, as in `/.well-known/ratelimit`")
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

func notInPath(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/-._~", r))
}
