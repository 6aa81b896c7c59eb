package resp_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/front/resp"
)

var update = flag.Bool("update", false, "write the replies into testdata/*.wire")

// changing is what differs from run to run.
var changing = regexp.MustCompile(`(127\.0\.0\.1:|id=|process_id:|uptime_in_seconds:|total_\w+:|connected_clients:|tt1_)[-\w]+|(\$2\\r\\nid\\r\\n):\d+|\$\d+(\\r\\n# Server|\\r\\nid=)`)

// Every file of testdata is a conversation, byte for byte. Its lines are:
//
//	> words      a command of these words, which Go quotes where they need it
//	>> text      bytes as they are sent, with Go's escapes
//	< text       the reply, with Go's escapes
//	+1.5s        so much time passes
//	#            what it is about
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/*.wire")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".wire"), func(t *testing.T) { playWire(t, file) })
	}
}

func playWire(t *testing.T, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock()
	c := onMemory(t, clock.now, func(o *resp.Options) {
		o.Version = "v9"
		o.Known = func(name string) bool { return name == "user" || name == "ip" }
		if strings.Contains(file, "auth") {
			o.Users = []resp.User{{Name: "default", Password: "secret"}, {Name: "ann", Password: "pass word", Prefix: "ann:"}, {Name: "bob", Password: "b", Prefix: "bob:"}}
		}
	})
	var lines []string
	for i, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		head, rest, _ := strings.Cut(line, " ")
		if head == "<" {
			continue
		}
		lines = append(lines, line)
		switch {
		case head == ">" || head == ">>":
			sent := rest
			if head == ">>" {
				if sent, err = strconv.Unquote(`"` + rest + `"`); err != nil {
					t.Fatalf("%s:%d: %v", file, i+1, err)
				}
			} else {
				sent = encode(split(t, rest)...)
			}
			c.send(sent)
			reply := c.reply()
			for c.r.Buffered() > 0 { // to several commands
				reply += c.reply()
			}
			shown := strconv.Quote(reply)
			lines = append(lines, "< "+changing.ReplaceAllString(shown[1:len(shown)-1], "$1$2…$3"))
		case strings.HasPrefix(line, "+"):
			d, err := time.ParseDuration(line[1:])
			if err != nil {
				t.Fatalf("%s:%d: %v", file, i+1, err)
			}
			clock.add(d)
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(raw) {
		t.Errorf("%s is out of date, or the server is wrong:\n%s", file, differences(string(raw), got))
	}
}

func split(t *testing.T, line string) (words []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word, _, _ := strings.Cut(line, " ")
		if quoted, err := strconv.QuotedPrefix(line); err == nil {
			word = quoted
		}
		line = line[len(word):]
		if plain, err := strconv.Unquote(word); err == nil && word[0] == '"' {
			word = plain
		}
		words = append(words, word)
	}
	return words
}

func differences(want, got string) string {
	var b strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		var a, z string
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			z = g[i]
		}
		if a != z {
			fmt.Fprintf(&b, "line %d\n\twant %s\n\tgot  %s\n", i+1, a, z)
		}
	}
	return b.String()
}
