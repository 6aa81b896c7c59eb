//go:build linux

// Package image tests the image that the Dockerfile describes, without a daemon: it does what
// the Dockerfile says by hand, and runs the result with chroot.
package image

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// instruction is one of a Dockerfile: COPY --from=build /a /b.
type instruction struct {
	word  string
	flags map[string]string // "from": "build"
	args  []string          // words, or the elements of a JSON array
	text  string            // what follows the flags
}

// stage is what is between two FROMs.
type stage struct {
	name, base   string
	instructions []instruction
}

// parseDockerfile returns the stages. An instruction that the tests do not know fails them:
// they would not build the image that Docker builds.
func parseDockerfile(t *testing.T, file string) (stages []stage) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		in := parseInstruction(t, line)
		if in.word == "FROM" {
			s := stage{base: in.args[0]}
			if len(in.args) == 3 && in.args[1] == "AS" {
				s.name = in.args[2]
			}
			stages = append(stages, s)
			continue
		}
		last := &stages[len(stages)-1]
		last.instructions = append(last.instructions, in)
	}
	return stages
}

func parseInstruction(t *testing.T, line string) instruction {
	t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	in := instruction{word: word, flags: map[string]string{}}
	switch word {
	case "FROM", "WORKDIR", "COPY", "RUN", "ARG", "ENV", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD":
	default:
		t.Fatalf("the Dockerfile has %s, which this test does not do", word)
	}
	for rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "--"); rest = strings.TrimSpace(rest) {
		var flag string
		flag, rest, _ = strings.Cut(rest, " ")
		name, value, _ := strings.Cut(flag[2:], "=")
		in.flags[name] = value
	}
	in.text = rest
	command := strings.TrimSpace(strings.TrimPrefix(rest, "CMD "))
	if !strings.HasPrefix(command, "[") {
		in.args = strings.Fields(rest)
	} else if err := json.Unmarshal([]byte(command), &in.args); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return in
}

// all returns the instructions of one word.
func (s stage) all(word string) (found []instruction) {
	for _, in := range s.instructions {
		if in.word == word {
			found = append(found, in)
		}
	}
	return found
}

// only returns the one instruction of a word.
func (s stage) only(t *testing.T, word string) instruction {
	t.Helper()
	found := s.all(word)
	if len(found) != 1 {
		t.Fatalf("the stage has %d of %s, want 1", len(found), word)
	}
	return found[0]
}
