package config

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// No file is written that another setting names, whichever two they are and however it is spelt.
func TestNoFileHasTwoUses(t *testing.T) {
	testdep.SkipUnderRace(t)
	spell := func(name, how string) string {
		abs, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"bare": "./" + name, "dots": "x/../" + name, "absolute": abs}[how]
	}
	try := func(want string, args ...string) {
		t.Helper()
		_, problems := Load(Options{
			File: defaultFile, Environ: []string{}, Flags: parseFlags(t, args...), Stat: everywhere,
			ReadFile: func(string) ([]byte, error) { return []byte("#"), nil },
		})
		if told := strings.Contains(problems.Error(), "has another use"); told != (want != "") || !strings.Contains(problems.Error(), want) {
			t.Errorf("%v: %q is wanted of\n%v", args, want, problems)
		}
	}
	pairs := 0
	for _, a := range table {
		for _, b := range table {
			if a.file == nothing || !b.file.written() || a == b || a.of == InRedis && b.of == InMemory {
				continue
			}
			var with []string
			if a.of == InRedis {
				with = append(with, "--store.redis=redis://h")
			}
			how := []string{"bare", "dots", "absolute"}[pairs%3]
			pairs++
			try("is written to a file that has another use", append(with, a.flag()+"="+spell("f.x", "bare"), b.flag()+"="+spell("f.x", how))...)
			try("", append(with, a.flag()+"="+spell("f.x", "bare"), b.flag()+"="+spell("g.x", how))...)
			for _, suffix := range b.beside {
				try("another use", append(with, a.flag()+"="+spell("f.x"+suffix, "bare"), b.flag()+"="+spell("f.x", how))...)
			}
		}
	}
	for _, s := range table {
		if s.file.written() {
			try("for the configuration itself", s.flag()+"="+defaultFile)
		}
	}
	try("", "--tls.cert=both.pem", "--tls.key=both.pem") // both are only read
	try("", "--log.access=stdout", "--admin.audit=./stdout")
}

// A header has one value, and a name.
func TestCredentials(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		for _, args := range [][]string{{"--defer.credentials=" + value}, nil} {
			var env []string
			if args == nil {
				env = []string{"TIDEGATE_DEFER_CREDENTIALS=" + value}
			}
			_, problems := Load(Options{
				File: defaultFile, Environ: append([]string{}, env...), Flags: parseFlags(t, args...), Stat: everywhere, OwnRules: true,
				ReadFile: func(string) ([]byte, error) { return []byte("#"), nil },
			})
			if problems.HasErrors() != (want != "") || !strings.Contains(problems.Error(), want) {
				t.Errorf("%q: got %v, want %q", value, problems, want)
			}
		}
	}
	f("Authorization=a", "")
	f("Authorization=a,X-Key=b", "")
	f("=a", "names no header")
	f(" = a", "names no header")
	f("Authorization=", "names no file")
	f("Authorization", "names no file")
	f("Authorization=a,authorization=b", "`defer.credentials` has `authorization` twice")
	f("X-A=a,X-B=b,x-a=a", "`defer.credentials` has `x-a` twice")
}

// mode is a file of some kind.
type mode struct {
	fs.FileInfo
	is fs.FileMode
}

func (m mode) IsDir() bool       { return m.is.IsDir() }
func (m mode) Mode() fs.FileMode { return m.is }

// What is written takes the place of nothing but what it is itself.
func TestWrittenReplacesNothingElse(t *testing.T) {
	for _, s := range table {
		if !s.file.written() {
			continue
		}
		for kind, is := range map[string]fs.FileMode{
			"file": 0, "folder": fs.ModeDir, "device": fs.ModeDevice | fs.ModeCharDevice, "disk": fs.ModeDevice, "pipe": fs.ModeNamedPipe, "socket": fs.ModeSocket,
		} {
			log := s.path == "log.access" && kind != "folder"
			fits := log || (kind == "file") == (s.file == itsFolder) && (kind == "folder") == (s.file == newFolder)
			_, problems := Load(Options{
				File: defaultFile, Environ: []string{}, Flags: parseFlags(t, s.flag()+"=a/f.x"),
				ReadFile: func(string) ([]byte, error) { return []byte("#"), nil },
				Stat: func(name string) (fs.FileInfo, error) {
					if filepath.Base(name) == "f.x" {
						return mode{is: is}, nil
					}
					return mode{is: fs.ModeDir}, nil
				},
			})
			if problems.HasErrors() == fits {
				t.Errorf("%s with a %s in its place: %v", s.path, kind, problems)
			}
		}
	}
}
