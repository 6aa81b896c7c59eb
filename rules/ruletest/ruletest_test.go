package ruletest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules"
)

// run writes a rule file and a test of it, and runs the test.
func run(t *testing.T, rulesText, steps string) *Report {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("rules.yaml", rulesText)
	name := write("test.yaml", "rules: rules.yaml\ncases:\n  - name: one\n    steps:\n"+steps)
	file, problems := Read(name)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	report, err := file.Run(t.Context(), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

const api = `version: 1
identify: { user: jwt.sub, net: ip /24 /48 }
rules:
  - { name: api, match: /api/, per: user, limits: 2/minute }
  - { name: idle, match: /idle/, per: net, limits: 2/minute }
`

func TestPasses(t *testing.T) {
	r := run(t, api, `
      - { request: GET /api/x, as: { user: 42 }, times: 3, want: [ok, ok, refused], retry_after: 1m, reset_after: 1m, remaining: 0, rule: api, answer: 429 }
      - { at: 1m, request: GET /api/x?q=1, as: { user: 42 }, want: ok }
      - { request: GET /api/x, as: { user: absent }, want: ok }
`)
	if r.Failed() != 0 || r.Steps != 3 || r.Requests != 5 || len(r.Untouched) != 1 || r.Untouched[0] != "idle" {
		t.Errorf("got %+v", r)
	}
}

// Each expectation can fail, at its own place.
func TestFails(t *testing.T) {
	f := func(step, place, message string) {
		t.Helper()
		r := run(t, api, "      - { request: GET /api/x, as: { user: 42 }, "+step+" }\n")
		var all []string
		for _, failure := range r.Cases[0].Failures {
			all = append(all, failure.Message)
			if !strings.Contains(failure.Source, "request: GET") || failure.Line != 5 || !strings.HasPrefix(failure.Source[failure.Col-1:], place) {
				t.Errorf("%s: points at line %d, col %d of %q, want %q", step, failure.Line, failure.Col, failure.Source, place)
			}
			if len(failure.Why) < 2 {
				t.Errorf("%s: no reason: %v", step, failure.Why)
			}
		}
		if strings.Join(all, "; ") != message {
			t.Errorf("%s:\n got %s\nwant %s", step, strings.Join(all, "; "), message)
		}
	}
	f("want: refused", "refused", "wanted refused, got ok")
	f("times: 3, want: ok", "ok", "wanted ok, got refused (time 3 of 3)")
	f("want: ok, remaining: 2", "2", "wanted remaining 2, got 1")
	f("want: ok, rule: idle", "idle", "wanted `idle` to decide, it was `api`")
	f("want: ok, shadow: api", "api", "wanted `api` to say it would have refused, it did not")
	f("want: ok, answer: 429", "429", "wanted answer 429, got 200")
	f("want: ok, wait: 1s", "1s", "wanted wait 1s, got 0s")
	f("times: 3, want: [ok, ok, refused], retry_after: 61s", "61s", "wanted retry_after 1m1s, got 1m0s (time 3 of 3)")
	f("want: ok, reset_after: 2m", "2m", "wanted reset_after 2m0s, got 1m0s")
}

// A rule that applies without a limit is touched, by its own terms or by a branch; one
// that does not apply is not, and one that is disabled cannot be.
func TestUnlimitedRulesAreTouched(t *testing.T) {
	const src = `version: 1
identify: { role: jwt.role }
exempt: [{ match: /healthz }]
rules:
  - { name: free, match: /free/, per: ip, limits: unlimited }
  - { name: staff, match: /staff/, per: ip, limits: 2/minute, for: [{ when: { role: admin }, limits: unlimited }] }
  - { name: health, match: /healthz, per: ip, limits: unlimited }
  - { name: late, match: /late/, per: ip, limits: unlimited, when: { role: late } }
  - { name: shadow, match: /shadow/, per: ip, limits: unlimited, mode: shadow }
  - { name: off, match: /off/, per: ip, limits: 2/minute, mode: disabled }
  - { name: deny, match: /deny/, deny: true }
`
	f := func(steps string, untouched ...string) {
		t.Helper()
		r := run(t, src, steps)
		if r.Failed() != 0 || !slices.Equal(r.Untouched, untouched) {
			t.Errorf("untouched are %q, want %q; %+v", r.Untouched, untouched, r.Cases[0].Failures)
		}
	}
	f("      - { request: GET /free/, want: ok }\n", "staff", "health", "late", "shadow", "deny")
	f("      - { request: GET /staff/, as: { role: admin }, times: 9, want: ok }\n", "free", "health", "late", "shadow", "deny")
	f("      - { request: GET /healthz, want: ok }\n      - { request: GET /late/, want: ok }\n", "free", "staff", "health", "late", "shadow", "deny")
	f(`
      - { request: GET /free/, want: ok }
      - { request: GET /staff/, as: { role: admin }, want: ok }
      - { request: GET /late/, as: { role: late }, want: ok }
      - { request: GET /shadow/, want: ok }
      - { request: GET /deny/, want: denied }
`, "health")
}

// What remains is what clients are told: of the limit as it is written, not of the
// ceiling above it.
func TestRemainingOfASoftLimit(t *testing.T) {
	r := run(t, `version: 1
rules: [{ name: soft, per: ip, limits: 10/minute, over: { soft: 20% } }]
`, `
      - { request: GET /, want: ok, remaining: 9 }
      - { request: GET /, times: 9, want: ok, remaining: 0 }
      - { request: GET /, times: 2, want: soft, remaining: 0 }
      - { request: GET /, want: refused, remaining: 0 }
`)
	if r.Failed() != 0 {
		t.Errorf("%+v", r.Cases[0].Failures)
	}
}

// A name that is misspelt would be nobody, and the test would pass for another
// reason than it says.
func TestUnknownIdentity(t *testing.T) {
	r := run(t, api, `
      - { request: GET /api/x, as: { usr: 42 }, want: ok }
      - { request: GET /api/x, as: { user: 42, host: a.example }, want: ok }
`)
	failures := r.Cases[0].Failures
	if len(failures) != 1 || failures[0].Line != 6 || !strings.Contains(failures[0].Message, "`usr`") || failures[0].Why[0] != "did you mean `user`?" {
		t.Errorf("got %+v", failures)
	}
}

func TestAddressIsOne(t *testing.T) {
	for _, ip := range []string{"nowhere", "300.1.1.1", "absent", "192.0.2.0/24", ""} {
		_, problems := parse("test.yaml", []byte("rules: r.yaml\ncases: [{ name: a, steps: [{ request: GET /, as: { ip: "+ip+" }, want: ok }] }]"))
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), "2:52: error: `ip` is the address") {
			t.Errorf("%s: %v", ip, err)
		}
	}
}

// What no front end could receive is a mistake of the file; it used to end the command.
func TestRequestIsOne(t *testing.T) {
	for _, request := range []string{"G(T /api/x", "GET [::1/x", "get /x", "GET x", "GET /a b"} {
		src := "rules: rules.yaml\ncases:\n  - name: odd\n    steps:\n      - { request: \"" + request + "\", want: ok }\n"
		if file, problems := parse("test.yaml", []byte(src)); file != nil || len(problems) != 1 || !strings.Contains(problems[0].Message, "is not a request") {
			t.Errorf("%s: got %v", request, problems)
		}
	}
}

// What is expected of a rule that does not hold the request says why it does not.
func TestSaysWhyARuleDoesNotHold(t *testing.T) {
	r := run(t, api, "      - { request: GET /other, want: ok, rule: api }\n")
	why := strings.Join(r.Cases[0].Failures[0].Why, "\n")
	if !strings.Contains(why, "`api` does not hold it: ") || !strings.Contains(why, "no rule holds this request") {
		t.Errorf("got %s", why)
	}
}

// Addresses are masked as they are in production, and cases start afresh.
func TestAddresses(t *testing.T) {
	r := run(t, api, `
      - { request: GET /idle/, as: { ip: 198.51.100.1 }, times: 2, want: ok }
      - { request: GET /idle/, as: { ip: 198.51.100.200 }, want: refused }
      - { request: GET /idle/, as: { ip: 198.51.101.1 }, want: ok }
      - { request: GET /idle/, as: { ip: "2001:db8::1" }, times: 2, want: ok }
      - { request: GET /idle/, as: { ip: "2001:db8::ffff" }, want: refused }
  - name: afresh
    steps:
      - { request: GET /idle/, as: { ip: 198.51.100.1 }, want: ok }
`)
	if r.Failed() != 0 {
		t.Errorf("%+v", r.Cases)
	}
}

// Whatever is in a test file, it is read or refused with a reason.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../../docs/examples/*_test.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		file, problems := parse("test.yaml", src)
		if (file == nil) != problems.HasErrors() {
			t.Fatalf("a file: %t, problems: %v", file != nil, problems)
		}
		if file == nil {
			return
		}
		for _, c := range file.cases {
			for i := range c.Steps {
				if s := &c.Steps[i]; len(s.Want) != s.Times {
					t.Fatalf("%d outcomes for %d times", len(s.Want), s.Times)
				}
				_ = c.Steps[i].newRequest()
			}
		}
	})
}

func TestForms(t *testing.T) {
	const login = "version: 1\nidentify: { account: lower trim body.user.email }\nrules: [{ name: login, match: POST /login, per: account, limits: 3/minute }]\n"
	r := run(t, login, `
      - { request: POST /login, form: { "user[email]": "Ann ", x: 1 }, want: ok, remaining: 2 }
      - { request: POST /login, multipart: { user.email: ANN }, want: ok, remaining: 1 }
      - { request: POST /login, body: { user: { email: ann } }, want: ok, remaining: 0 }
      - { request: POST /login, as: { account: aNN }, want: refused }
      - { request: POST /login, form: { user.email: [ann, bob] }, want: ok, remaining: 2 }
      - { request: POST /login, headers: { Content-Type: text/plain }, form: { user.email: zoe }, want: ok, remaining: 1 }
`)
	if r.Failed() != 0 {
		t.Errorf("%+v", r.Cases)
	}
	for _, step := range []string{"form: ann", "form: { a: { b: c } }", "form: { a: b }, body: { a: b }", "body: { a: b }, multipart: { a: b }", "form: { a: b }, multipart: { a: b }"} {
		src := "rules: rules.yaml\ncases:\n  - name: one\n    steps:\n      - { request: POST /login, " + step + ", want: ok }\n"
		if _, problems := parse("test.yaml", []byte(src)); len(problems) != 1 || !problems.HasErrors() {
			t.Errorf("%s: %v", step, problems)
		}
	}
}

// A test is one instance: however a fleet shares a limit, and however many instances the file
// names, the whole limit is at hand, and no more.
func TestLeasedAndSplitAreOneInstance(t *testing.T) {
	for _, mode := range []string{"strict", "leased", "split"} {
		for _, said := range []string{"rule", "defaults"} {
			for _, instances := range []string{"", "instances: 1\n", "instances: 7\n"} {
				for _, limit := range []string{
					"limits: 20/minute", "limits: { rate: 20/minute, algorithm: token_bucket }", "limits: { rate: 20/minute, algorithm: fixed_window }",
					"limits: { rate: 20/minute, algorithm: sliding_log }", "limits: { rate: 20/minute, algorithm: sliding_window }",
					"limits: { rate: 20/minute, algorithm: sub_windows }", "quota: 20/day", "limits: { from: jwt.n, per: minute, max: 99, else: 20 }",
				} {
					top, own := "", ", consistency: "+mode
					if said == "defaults" {
						top, own = "defaults: { consistency: "+mode+" }\n", ""
					}
					r := run(t, "version: 1\n"+instances+top+"rules:\n  - { name: a, per: ip, "+limit+own+" }\n", `
      - { request: GET /, times: 20, want: ok, remaining: 0 }
      - { request: GET /, want: refused }
      - { at: 25h, request: GET /, times: 20, want: ok }
      - { at: 25h, request: GET /, want: refused }
`)
					if r.Failed() != 0 {
						t.Errorf("%s%s in %s, %s: %+v", instances, mode, said, limit, r.Cases[0].Failures)
					}
				}
			}
		}
	}
}

// A header that is written in two ways is sent twice, whatever the order: two values are none.
func TestHeadersOfOneName(t *testing.T) {
	const byKey = "version: 1\nidentify: { key: client header X-Key }\nrules: [{ name: api, per: key, limits: 1/minute }]\n"
	for range 20 {
		r := run(t, byKey, `
      - { request: GET /, headers: { X-Key: a, x-key: b }, want: ok }
      - { request: GET /, headers: { X-Key: a }, want: ok }
      - { request: GET /, headers: { x-key: b }, want: ok }
      - { request: GET /, want: refused }
`)
		if r.Failed() != 0 {
			t.Fatalf("got %+v", r.Cases)
		}
	}
}

// A case begins and ends while the clock of the counters runs: outside, nothing would ever be free again.
func TestCaseIsWithinTheClock(t *testing.T) {
	const rule = "version: 1\nrules: [{ name: api, per: ip, limits: 1/minute }, { name: day, per: ip, quota: 2/day }]\n"
	steps := func(start, at string) string {
		return "      - { at: 0s, request: GET /, times: 2, want: [ok, refused] }\n      - { at: " + at + ", request: GET /, times: 2, want: [ok, refused] }\n    start: " + start + "\n"
	}
	for _, start := range []string{"1970-01-01T00:00:00Z", "1970-01-01T01:00:00+01:00", "2249-12-31T23:50:00Z"} {
		if r := run(t, rule, steps(start, "5m")); r.Failed() != 0 {
			t.Errorf("%s: %+v", start, r.Cases)
		}
	}
	f := func(start, at, want string) {
		t.Helper()
		_, problems := parse("test.yaml", []byte("rules: rules.yaml\ncases:\n  - name: one\n    steps:\n"+steps(start, at)))
		if len(problems) != 1 || !strings.Contains(problems[0].Message, want) {
			t.Errorf("%s, %s: got %v", start, at, problems)
		}
	}
	f("1969-12-31T23:59:59Z", "1m", "is not between 1970 and 2250")
	f("0001-01-01T00:00:00Z", "1m", "is not between 1970 and 2250")
	f("9999-12-31T23:59:59Z", "1m", "is not between 1970 and 2250")
	f("2026-01-01T00:00:00Z", "2562047h", "this step is after 2250")
	f("2249-12-31T23:59:59Z", "2s", "this step is after 2250")
}
