//go:build unix

package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
)

// repeat writes format n times, with the number of each.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return b.String()
}

const identities = "identify: { user: jwt.sub, role: jwt.role, key: client header X-Key, id: \"path {id}\" }\n"

// oneRule is a file whose one rule has more, which starts at its fields.
func oneRule(more string) string {
	return "version: 1\n" + identities + "rules:\n  - name: api\n    per: user\n" + more
}

// manyRules is a file with n rules, each with more in its braces.
func manyRules(n int, more string) string {
	return "version: 1\n" + identities + "rules:\n" + repeat(n, "  - { name: r#, "+more+" }\n")
}

// long are files in which one thing of the language is there n times.
var long = map[string]func(n int) string{
	"rules of own paths":       func(n int) string { return manyRules(n, "match: /p#/, per: ip, limits: 10/minute") },
	"rules of one path":        func(n int) string { return manyRules(n, "match: /p, per: user, limits: 1#/minute") },
	"rules of one path, alike": func(n int) string { return manyRules(n, "match: /p, per: user, limits: 10/minute") },
	"rules everywhere":         func(n int) string { return manyRules(n, "per: user, limits: 1#/minute") },
	"rules by value":           func(n int) string { return manyRules(n, "when: { user: u# }, per: user, limits: 10/minute") },
	"rules by client value":    func(n int) string { return manyRules(n, "when: { key: u# }, per: key, limits: 10/minute") },
	"rules by many values": func(n int) string {
		return manyRules(n/10+1, "when: { user: [a#, b#, c#, d#, e#, f#, g#, h#, i#, j#] }, per: user, limits: 10/minute")
	},
	"rules by absent": func(n int) string {
		return manyRules(n, "match: /p#, unless: { user: absent }, per: user, limits: 10/minute")
	},
	"rules below one another": func(n int) string {
		return manyRules(n, "match: [/a/, /a/b#/, \"/a/{id}/\"], per: id, limits: 10/minute")
	},
	"rules of wildcards":     func(n int) string { return manyRules(n, "match: \"/{x#}/a\", per: ip, limits: 10/minute") },
	"rules of hosts":         func(n int) string { return manyRules(n, "match: h#.example.com/, per: ip, limits: 10/minute") },
	"rules of methods":       func(n int) string { return manyRules(n, "match: M# /, per: ip, limits: 10/minute") },
	"deny rules":             func(n int) string { return manyRules(n, "when: { user: u# }, deny: true") },
	"deny rules of networks": func(n int) string { return manyRules(n, "when: { ip: 10.0.0.0/8 }, deny: true") },
	"shadow rules":           func(n int) string { return manyRules(n, "match: /p, per: ip, limits: 10/minute, mode: shadow") },
	"rules with block": func(n int) string {
		return manyRules(n, "match: POST /p#, per: ip, limits: 5/15m, count: { status: [401] }, block: 15m")
	},
	"rules with settle": func(n int) string {
		return manyRules(n, "match: /p, per: user, limits: 100/minute, cost: { reserve: body.f#, else: 1, max: 10, settle: response.body.g# }")
	},
	"rules with from": func(n int) string {
		return manyRules(n, "match: /p, per: user, limits: { from: jwt.f#, per: minute, max: 10, else: 5 }")
	},
	"rules for everyone": func(n int) string { return manyRules(n, "match: /p, per: everyone, limits: 10/minute") },
	"rules per two":      func(n int) string { return manyRules(n, "match: /p#, per: [ip, route], limits: 10/minute") },
	"rules per wildcard": func(n int) string { return manyRules(n, "match: \"/p#/{id}\", per: id, limits: 10/minute") },
	"instead of the one before": func(n int) string {
		return "version: 1\nrules:\n  - { name: r, match: /, per: ip, limits: 1/minute }\n" + repeat(n, "  - { name: x#, match: /x#/, per: ip, limits: 10/minute, instead_of: r }\n")
	},
	"instead of many": func(n int) string {
		return manyRules(n, "match: /, per: ip, limits: 10/minute") + "  - { name: all, match: /, per: ip, limits: 10/minute, instead_of: [" + repeat(n, "r#, ") + "] }\n"
	},
	"a chain of instead of": func(n int) string {
		return "version: 1\nrules:\n  - { name: x0, match: /, per: ip, limits: 1/minute }\n" + chain(n)
	},
	"patterns": func(n int) string {
		return oneRule("    limits: 10/minute\n    match:\n" + repeat(n, "      - /p#/\n"))
	},
	"patterns of methods": func(n int) string {
		return oneRule("    limits: 10/minute\n    match:\n" + repeat(n, "      - POST /p#/\n"))
	},
	"patterns with wildcards": func(n int) string {
		return oneRule("    limits: 10/minute\n    match:\n" + repeat(n, "      - /a/{id}/b#\n"))
	},
	"patterns of hosts": func(n int) string {
		return oneRule("    limits: 10/minute\n    match:\n" + repeat(n, "      - h#.com/\n"))
	},
	"patterns of one path": func(n int) string {
		return oneRule("    limits: 10/minute\n    match:\n" + repeat(n, "      - /a#\n      - /a#/\n"))
	},
	"deep patterns": func(n int) string {
		return oneRule("    limits: 10/minute\n    match:\n" + repeat(n/20+1, "      - "+strings.Repeat("/a", 30)+"/p#\n"))
	},
	"one pattern of wildcards": func(n int) string {
		return oneRule("    limits: 10/minute\n    match: " + repeat(n, "/{a#}") + "\n")
	},
	"one long pattern": func(n int) string {
		return oneRule("    limits: 10/minute\n    match: " + strings.Repeat("/a", 5*n) + "\n")
	},
	"branches": func(n int) string {
		return oneRule("    limits: 10/minute\n    for:\n" + repeat(n, "      - { when: { user: u# }, limits: 1#/minute }\n"))
	},
	"branches alike": func(n int) string {
		return oneRule("    limits: 10/minute\n    for:\n" + repeat(n, "      - { when: { user: u# }, limits: 20/minute }\n"))
	},
	"branches of one value": func(n int) string {
		return oneRule("    limits: 10/minute\n    for:\n" + repeat(n, "      - { when: { user: u }, limits: 1#/minute }\n"))
	},
	"branches of client values": func(n int) string {
		return oneRule("    limits: 10/minute\n    for:\n" + repeat(n, "      - { when: { key: u# }, limits: 1#/minute }\n"))
	},
	"branches by absent": func(n int) string {
		return oneRule("    limits: 10/minute\n    for:\n" + repeat(n, "      - { unless: { role: r# }, limits: 1#/minute }\n"))
	},
	"branches of stars": func(n int) string {
		return oneRule("    limits: 10/minute\n    for:\n" + repeat(n, "      - { when: { role: \"r#-*\" }, limits: 1#/minute }\n"))
	},
	"branches of networks": func(n int) string {
		return oneRule("    limits: 10/minute\n    for:\n" + repeat(n, "      - { when: { ip: 10.0.0.0/8 }, limits: 1#/minute }\n"))
	},
	"branches that end": func(n int) string {
		return oneRule("    limits: 10/minute\n    for:\n" + repeat(n, "      - { when: { user: u# }, limits: 1#/minute, until: 2126-01-01T00:00:00Z }\n"))
	},
	"branches that have ended": func(n int) string {
		return oneRule("    limits: 10/minute\n    for:\n" + repeat(n, "      - { when: { user: u# }, limits: 1#/minute, until: 2020-01-01T00:00:00Z }\n"))
	},
	"branches of quotas": func(n int) string {
		return oneRule("    quota: 10/month\n    for:\n" + repeat(n, "      - { when: { user: u# }, quota: 1#/month }\n"))
	},
	"branches of several rules": func(n int) string {
		return "version: 1\n" + identities + "rules:\n" + repeat(10, "  - name: r#\n    match: /p\n    per: user\n    limits: 10/minute\n    for:\n"+strings.ReplaceAll(repeat(n/10+1, "      - { when: { user: u# }, limits: 1#/minute }\n"), "#", "x"))
	},
	"limits":            func(n int) string { return oneRule("    limits:\n" + repeat(n, "      - 1#/minute\n")) },
	"limits of periods": func(n int) string { return oneRule("    limits:\n" + repeat(n, "      - 1#/1#s\n")) },
	"limits alike":      func(n int) string { return oneRule("    limits:\n" + repeat(n, "      - 10/minute\n")) },
	"limits of buckets": func(n int) string {
		return oneRule("    limits:\n" + repeat(n, "      - { rate: 1#/minute, burst: 1#, algorithm: token_bucket }\n"))
	},
	"limits of a branch": func(n int) string {
		return oneRule("    limits: 5/minute\n    for:\n      - when: { user: u }\n        limits:\n" + repeat(n, "          - 1#/1#s\n"))
	},
	"per": func(n int) string {
		return "version: 1\nrules:\n  - { name: a, per: [" + repeat(n, "ip, ") + "], limits: 1/minute }\n"
	},
	"identities": func(n int) string {
		n = min(n, 1000)
		return "version: 1\nidentify:\n" + repeat(n, "  u#: client header X-#\n") + "rules:\n" + repeat(n, "  - { name: r#, per: u#, limits: 1/minute }\n")
	},
	"sources of an identity": func(n int) string {
		return "version: 1\nidentify:\n  u: [" + repeat(n, "client header X-#, ") + "]\nrules:\n  - { name: a, when: { u: x }, per: ip, limits: 1/minute }\n"
	},
	"values": func(n int) string {
		return oneRule("    limits: 1/minute\n    when: { user: [" + repeat(n, "u#, ") + "] }\n")
	},
	"values alike": func(n int) string {
		return oneRule("    limits: 1/minute\n    when: { user: [" + repeat(n, "u, ") + "] }\n")
	},
	"values of unless": func(n int) string {
		return oneRule("    limits: 1/minute\n    unless: { user: [" + repeat(n, "u#, ") + "] }\n")
	},
	"values of a branch": func(n int) string {
		return oneRule("    limits: 1/minute\n    for:\n      - { when: { user: [" + repeat(n, "u#, ") + "] }, limits: 2/minute }\n      - { when: { user: [" + repeat(n, "v#, ") + "] }, limits: 3/minute }\n")
	},
	"stars": func(n int) string {
		return oneRule("    limits: 1/minute\n    when: { user: [" + repeat(n, "\"u#-*\", ") + "] }\n")
	},
	"networks": func(n int) string { return oneRule("    limits: 1/minute\n    when: { ip: [" + networks(n) + "] }\n") },
	"list": func(n int) string {
		return "version: 1\nlists: { l: [" + repeat(n, "u#, ") + "] }\n" + identities + "rules:\n  - { name: a, when: { user: in l }, per: ip, limits: 1/minute }\n"
	},
	"list of networks": func(n int) string {
		return "version: 1\nlists: { l: [" + networks(n) + "] }\nrules:\n  - { name: a, when: { ip: in l }, per: ip, limits: 1/minute }\n"
	},
	"lists on a line": func(n int) string {
		return "version: 1\nlists: {" + repeat(n, " l#: [a, b],") + " }\nrules: [{ name: a, per: ip, limits: 1/minute }]\n"
	},
	"colons on a line": func(n int) string { return repeat(n, "a#: ") },
	"stars on a line":  func(n int) string { return "rules: [{ name: *" + repeat(n, "a") + " }]\n" },
	"an address on a line": func(n int) string {
		return "version: 1\nrules: [{ name: a, per: ip, when: { ip: " + repeat(n, "ab:") + "1 }, limits: 1/minute }]\n"
	},
	"lists": func(n int) string {
		return "version: 1\nlists:\n" + repeat(n, "  l#: [a, b]\n") + "rules:\n" + repeat(n, "  - { name: r#, when: { ip: in l# }, per: ip, limits: 1/minute }\n")
	},
	"in lists": func(n int) string {
		return "version: 1\nlists: { l: [1.2.3.4] }\nrules:\n  - { name: a, when: { ip: [" + repeat(n, "in l, ") + "] }, per: ip, limits: 1/minute }\n"
	},
	"exemptions": func(n int) string {
		return "version: 1\nexempt:\n" + repeat(n, "  - { match: /e# }\n") + "rules:\n  - { name: a, per: ip, limits: 1/minute }\n"
	},
	"exemptions by value": func(n int) string {
		return "version: 1\n" + identities + "exempt:\n" + repeat(n, "  - { when: { user: u# } }\n") + "rules:\n  - { name: a, per: ip, limits: 1/minute }\n"
	},
	"exempt patterns": func(n int) string {
		return "version: 1\nexempt:\n  - match: [" + repeat(n, "/e#, ") + "]\nrules:\n  - { name: a, per: ip, limits: 1/minute }\n"
	},
	"rules and exemptions": func(n int) string {
		return "version: 1\nexempt:\n" + repeat(n/2, "  - { match: /r#/x }\n") + "rules:\n" + repeat(n/2, "  - { name: a#, match: /r#/, per: ip, limits: 1/minute }\n")
	},
	"statuses": func(n int) string {
		return oneRule("    limits: 1/minute\n    count: { status: [" + strings.Repeat("401, ", n) + "] }\n")
	},
	"includes": func(n int) string {
		return "version: 1\ninclude: [" + strings.Repeat("none.yaml, ", n) + "]\nrules:\n  - { name: a, per: ip, limits: 1/minute }\n"
	},
	"includes of others": func(n int) string {
		return "version: 1\ninclude: [" + repeat(n, "none#.yaml, ") + "]\nrules:\n  - { name: a, per: ip, limits: 1/minute }\n"
	},
	"a long body": func(n int) string {
		return oneRule("    limits: 1/minute\n    respond: { body: \"" + strings.Repeat("{rule} ", n) + "\" }\n")
	},
	"a long reason": func(n int) string {
		return oneRule("    limits: 1/minute\n    for: [{ when: { user: a }, limits: 2/minute, reason: \"" + strings.Repeat("why ", n) + "\" }]\n")
	},
	"a block scalar": func(n int) string {
		return oneRule("    limits: 1/minute\n    respond:\n      body: |\n" + strings.Repeat("        line\n", n))
	},
	"comments": func(n int) string { return oneRule("    limits: 1/minute\n" + strings.Repeat("    # why\n", n)) },
	// Things that are wrong, n times.
	"dashes":         func(n int) string { return "version: 1\nrules:\n" + strings.Repeat("-\n", n) },
	"dashes alone":   func(n int) string { return strings.Repeat("-\n", n) },
	"unknown fields": func(n int) string { return "version: 1\nrules:\n" + repeat(n, "  - { nmae: r#, x#: y }\n") },
	"names twice": func(n int) string {
		return "version: 1\nrules:\n" + repeat(n, "  - { name: r, per: ip, limits: 1/minute }\n")
	},
	"unknown identities": func(n int) string { return manyRules(n, "per: nobody#, limits: 1/minute") },
	"unknown conditions": func(n int) string { return manyRules(n, "when: { who#: x }, per: ip, limits: 1/minute") },
	"unknown lists":      func(n int) string { return manyRules(n, "when: { ip: in l# }, per: ip, limits: 1/minute") },
	"unknown rules":      func(n int) string { return manyRules(n, "per: ip, limits: 1/minute, instead_of: x#") },
	"bad limits":         func(n int) string { return manyRules(n, "per: ip, limits: #/fortnight") },
	"bad patterns":       func(n int) string { return manyRules(n, "match: GET/x#, per: ip, limits: 1/minute") },
	"bad networks": func(n int) string {
		return oneRule("    limits: 1/minute\n    when: { ip: [" + repeat(n, "10.0.0.1/99#, ") + "] }\n")
	},
	"bad branches": func(n int) string {
		return oneRule("    limits: 1/minute\n    for:\n" + repeat(n, "      - { wen: { user: u# }, limits: x }\n"))
	},
	"tabs":       func(n int) string { return "version: 1\nrules:\n" + strings.Repeat("\t- x\n", n) },
	"aliases":    func(n int) string { return "version: 1\na: &a [x]\nrules: [" + strings.Repeat("*a, ", n) + "]\n" },
	"brackets":   func(n int) string { return "version: 1\nrules: " + strings.Repeat("[", n) + "\n" },
	"braces":     func(n int) string { return "version: 1\nrules: " + strings.Repeat("{a: ", n) + "\n" },
	"indents":    func(n int) string { return "version: 1\nrules:\n" + strings.Repeat("- ", n) + "\n" },
	"quotes":     func(n int) string { return "version: 1\nrules:\n" + strings.Repeat("- '\n", n) },
	"documents":  func(n int) string { return strings.Repeat("---\nversion: 1\n", n) },
	"top fields": func(n int) string { return "version: 1\n" + repeat(n, "x#: y\n") },
	"one field twice": func(n int) string {
		return "version: 1\nrules:\n  - { name: a, per: ip, limits: 1/minute, " + strings.Repeat("per: ip, ", n) + "}\n"
	},
	"a line of values":     func(n int) string { return "version: 1\nrules: [" + repeat(n, "r#, ") + "]\n" },
	"bad values on a line": func(n int) string { return oneRule("    limits: [" + repeat(n, "x#, ") + "]\n") },
	"instead of itself":    func(n int) string { return manyRules(n, "per: ip, limits: 1/minute, instead_of: r#") },
	"instead of in a ring": func(n int) string {
		return "version: 1\nrules:\n  - { name: x0, match: /, per: ip, limits: 1/minute, instead_of: x" + fmt.Sprint(n) + " }\n" + chain(n)
	},
}

func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - { name: x%d, match: /, per: ip, limits: 1/minute, instead_of: x%d }\n", i+1, i)
	}
	return b.String()
}

func networks(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d.%d.%d.0/24, ", 1+i>>16, i>>8&255, i&255)
	}
	return b.String()
}

// sized returns f of a size of about bytes.
func sized(f func(n int) string, bytes int) (src []byte, n int) {
	for n = 1; len(f(n)) < bytes && n < 1<<18; n *= 2 {
	}
	return []byte(f(n)), n
}

// Whatever a file repeats, and however wrong it is, it is read and looked at to the
// end, and a hundred problems are told, with how many more there are.
func TestEveryRepetitionIsToldInAHundredProblems(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(long)) {
		if i%thin != 0 {
			continue
		}
		src, _ := sized(long[name], 16_000)
		_, err := rules.Parse("big.yaml", src, rules.Config{ReadFile: nothing})
		var load *rules.LoadError
		if errors.As(err, &load) && (len(load.Problems) > diag.MaxTold+2 || len(load.Error()) > max(4<<10, 2<<10*len(load.Problems))) {
			t.Errorf("%s: %d problems are told on loading, in %d bytes", name, len(load.Problems), len(load.Error()))
		}
		file := filepath.Join(t.TempDir(), "big.yaml")
		if err := os.WriteFile(file, src, 0o600); err != nil {
			t.Fatal(err)
		}
		found := File(file, Options{})
		if len(found) > diag.MaxTold+2 {
			t.Errorf("%s: lint tells %d problems", name, len(found))
		}
		if err != nil && !found.HasErrors() {
			t.Errorf("%s: loading says %v, and lint finds no error", name, err)
		}
	}
}

func nothing(string) ([]byte, error) { return nil, fs.ErrNotExist }

// cpu is the processor time that the process has taken: that of a busy machine's
// other processes is not in it.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A file four times as long takes about four times as long to load, where it once
// took sixteen times.
func TestLoadingGrowsWithTheFile(t *testing.T) {
	testdep.SkipUnderRace(t)
	for i, name := range []string{
		"patterns", "patterns of hosts", "exempt patterns", "limits of periods", "limits of a branch", "branches", "unknown rules",
		"rules with settle", "rules with from", "sources of an identity", "in lists", "instead of many", "dashes", "lists", "lists on a line",
	} {
		if thin > 1 && i%4 != 0 {
			continue
		}
		size := 50_000
		if name == "lists on a line" { // of which many are short
			size = 200_000
		}
		src, n := sized(long[name], size)
		larger := []byte(long[name](4 * n))
		larger = larger[:min(len(larger), 1<<20)]
		took := func(src []byte) time.Duration {
			start := cpu(t)
			_, _ = rules.Parse("big.yaml", src, rules.Config{})
			return max(cpu(t)-start, 10*time.Millisecond)
		}
		short, long := took(src), took(larger)
		for again := 0; long > 10*short && again < 3; again++ { // a collection may have come between
			short, long = max(short, took(src)), min(long, took(larger))
		}
		if long > 10*short {
			t.Errorf("%s: %d bytes take %s, %d bytes %s", name, len(src), short, len(larger), long)
		}
	}
}

// A check that would compare more than it may is cut short, and the file says which;
// what it found until then is told.
func TestChecksAreCutShort(t *testing.T) {
	testdep.SkipUnderRace(t)
	for name, check := range map[string]string{"branches": "shadowed-branch", "limits of periods": "never-bites", "patterns": "escapable-route"} {
		if thin > 1 && name != "branches" {
			continue
		}
		src, _ := sized(long[name], 200_000)
		file, problems := rulefile.Parse("big.yaml", src, rulefile.Options{})
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		found := run(file, Options{})
		if !slices.ContainsFunc(found, func(p diag.Problem) bool {
			return strings.HasPrefix(p.Message, "the file is so large") && strings.Contains(p.Message, "`"+check+"`")
		}) {
			t.Errorf("%s: %s is not said to be cut short: %v", name, check, found)
		}
	}
	// What people write is looked at as a whole.
	for i, name := range slices.Sorted(maps.Keys(long)) {
		if name == "identities" || i%thin != 0 {
			continue // 128 headers that a caller may send or not, on one route
		}
		src, _ := sized(long[name], 4_000)
		if file, problems := rulefile.Parse("small.yaml", src, rulefile.Options{}); file != nil && !problems.HasErrors() {
			for _, p := range run(file, Options{}) {
				if strings.HasPrefix(p.Message, "the file is so large") {
					t.Errorf("%s of %d bytes: %s", name, len(src), p.Message)
				}
			}
		}
	}
}
