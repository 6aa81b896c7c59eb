package config

import (
	"bytes"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// FuzzLoad holds that no file, variable or flag makes Load panic, and that what
// it takes, Write writes so that it is taken again.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		var src, env, args string
		for _, p := range readParts(f, file) {
			switch {
			case strings.HasSuffix(p.name, defaultFile):
				src = p.text
			case p.name == "env":
				env = p.text
			case p.name == "flags":
				args = p.text
			}
		}
		f.Add(src, env, args)
	}
	f.Fuzz(func(t *testing.T, src, env, args string) {
		flags := &FlagValues{texts: make(map[string][]string)}
		for line := range strings.Lines(args) {
			path, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "--"), "=")
			flags.texts[path] = append(flags.texts[path], value)
		}
		o := Options{
			File: defaultFile, Environ: strings.Split(env, "\n"), Flags: flags, Stat: everywhere,
			ReadFile: func(string) ([]byte, error) { return []byte(src), nil },
		}
		c, problems := Load(o)
		problems.Write(new(bytes.Buffer), true)
		if (c == nil) != problems.HasErrors() {
			t.Fatalf("config is %v, with these problems:\n%v", c, problems)
		}
		if c == nil {
			return
		}
		var text bytes.Buffer
		c.Write(&text)
		// What is not set is found again beside the file.
		again, problems := Load(Options{
			File: defaultFile, Environ: []string{}, Stat: o.Stat,
			Flags:    &FlagValues{texts: map[string][]string{"rules": {strings.Join(c.Rules, ",")}}},
			ReadFile: func(string) ([]byte, error) { return text.Bytes(), nil },
		})
		if problems.HasErrors() {
			t.Fatalf("%v\nin\n%s", problems, text.String())
		}
		c.origins, again.origins = nil, nil
		c.Store.Redis.URL = withoutSecrets(c.Store.Redis.URL)
		for _, shards := range [][]Shard{c.Store.Redis.Shards, c.Store.Redis.Was, c.Store.Redis.Regions} {
			for i := range shards {
				shards[i].URL = withoutSecrets(shards[i].URL)
			}
		}
		if !reflect.DeepEqual(c, again) {
			t.Errorf("got %+v, want %+v\nin\n%s", again, c, text.String())
		}
	})
}
