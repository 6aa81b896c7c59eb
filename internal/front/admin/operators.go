package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Operators has the operators with tokens, by the SHA-256 of the token.
type Operators map[[sha256.Size]byte]Operator

const (
	maxOperators = 10_000
	maxName      = 64
)

// ParseOperators reads a file of operators: a line for each, with its name, its role and the
// SHA-256 of its token in hex. The error has everything that is wrong with it.
func ParseOperators(file string, text []byte) (Operators, error) {
	operators := make(Operators)
	var wrong diag.List
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if message, hint := operators.add(words); message != "" {
			wrong.Add(diag.Problem{Pos: diag.Pos{File: file, Line: number, Col: 1}, Severity: diag.Error, Message: message, Hint: hint})
		}
	}
	switch {
	case wrong.HasErrors():
		return nil, wrong.Bounded()
	case len(operators) == 0:
		return nil, diag.List{{Pos: diag.Pos{File: file}, Severity: diag.Error, Message: "there are no operators in the file", Hint: operatorsHint}}
	}
	return operators, nil
}

const operatorsHint = "write a line such as `alice operate` and the SHA-256 of her token, which `printf %s \"$TOKEN\" | sha256sum` prints"

// add adds the operator of a line, or says what is wrong. It does not quote the line, which may
// contain a token by mistake.
func (r Operators) add(words []string) (message, hint string) {
	if len(words) != 3 {
		return fmt.Sprintf("a line has a name, a role and a SHA-256, and this has %d words", len(words)), operatorsHint
	}
	name, word := words[0], words[1]
	role := ParseRole(word)
	var hash [sha256.Size]byte
	switch n, err := hex.Decode(hash[:], []byte(words[2][:min(len(words[2]), 2*sha256.Size)])); {
	case !validName(name):
		return fmt.Sprintf("the name is longer than %d bytes, or has characters that cannot be printed", maxName), ""
	case role == Nobody:
		hint = "it is view, operate, rule or scrape"
		if near := diag.Nearest(word, roleNames[1:]); near != "" {
			hint = "did you mean `" + near + "`? " + hint
		}
		return "there is no such role", hint
	case err != nil || n != sha256.Size || len(words[2]) != 2*sha256.Size:
		return "the third word is not a SHA-256, which has 64 hex digits", operatorsHint
	case hash == sha256.Sum256(nil) || hash == sha256.Sum256([]byte("\n")):
		return "this is the SHA-256 of nothing: no token has it", operatorsHint
	case len(r) == maxOperators:
		return fmt.Sprintf("there are more than %d operators", maxOperators), ""
	}
	if _, ok := r[hash]; ok {
		return "another line has the same token", "give each operator a token of its own"
	}
	r[hash] = Operator{name, role, "token"}
	return "", ""
}

// validName reports whether an operator may have that name: names are printed and logged.
func validName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}
