package recipes

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// middleware is what httplimit makes.
type middleware = func(http.Handler) http.Handler

// loginRule is the rule file that every framework has to run.
const loginRule = "../../docs/examples/login.yaml"

// site is a server of a framework with a page POST /login that is limited by loginRule.
type site struct {
	*httptest.Server
	t *testing.T
}

func serveLogin(t *testing.T, app func(limit middleware) http.Handler) site {
	t.Helper()
	set, err := rules.Load(loginRule, rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	gate := tidegate.NewGate(rules.NewLive(set), memory.New())
	s := site{httptest.NewServer(app(httplimit.Gate(gate))), t}
	t.Cleanup(s.Close)
	return s
}

// post sends a password and returns the status.
func (s site) post(password string) int {
	s.t.Helper()
	client := s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Post(s.URL+"/login?password="+password, "", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
		s.t.Error("a refusal has no Retry-After")
	}
	return resp.StatusCode
}

// testLogin runs the rule: right passwords cost nothing, five wrong ones are answered as the
// application does, and the sixth is refused.
func testLogin(t *testing.T, right int, app func(limit middleware) http.Handler) {
	t.Helper()
	s := serveLogin(t, app)
	for range 10 {
		if got := s.post("right"); got != right {
			t.Fatalf("a right password: %d, want %d", got, right)
		}
	}
	for i := range 5 {
		if got := s.post("wrong"); got != http.StatusUnauthorized {
			t.Fatalf("wrong password %d: %d, want 401", i+1, got)
		}
	}
	for _, password := range []string{"wrong", "right"} {
		if got := s.post(password); got != http.StatusTooManyRequests {
			t.Errorf("after five wrong passwords, a %s one: %d, want 429", password, got)
		}
	}
}

// testPathValue counts by the value of a route /{tenant}/report, which every framework writes
// in its own way.
func testPathValue(t *testing.T, app func(limit middleware) http.Handler) {
	t.Helper()
	lim := tidegate.New(memory.New(), tidegate.PerHour(1))
	srv := httptest.NewServer(app(httplimit.Limit(lim, httplimit.PathValue("tenant"))))
	t.Cleanup(srv.Close)
	for _, tenant := range []string{"ann", "bob"} {
		for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			resp, err := srv.Client().Get(srv.URL + "/" + tenant + "/report")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s: %d, want %d", tenant, resp.StatusCode, want)
			}
		}
		if d := lim.Peek(context.Background(), tenant); d.OK {
			t.Errorf("%s was counted under another key", tenant)
		}
	}
}

// login is the page where no framework has its own handlers.
func login(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("password") != "right" {
		http.Error(w, "wrong password", http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func report(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// squeeze leaves indentation and empty lines out of a comparison.
func squeeze(code string) string { return strings.Join(strings.Fields(code), " ") }

// Each recipe of the page is code of these tests.
func TestPageShowsTheseRecipes(t *testing.T) {
	page, err := os.ReadFile("../../docs/frameworks.md")
	if err != nil {
		t.Fatal(err)
	}
	var tested string
	for _, file := range []string{"mux_test.go", "chi_test.go", "gorilla_test.go", "gin_test.go", "echo_test.go", "echo4_test.go"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tested += squeeze(string(raw)) + "\n"
	}
	recipes := goBlock.FindAllStringSubmatch(string(page), -1)
	if len(recipes) < 6 {
		t.Errorf("the page has %d recipes", len(recipes))
	}
	for _, recipe := range recipes {
		if !strings.Contains(tested, squeeze(recipe[1])) {
			t.Errorf("no test has this recipe:\n%s", recipe[1])
		}
	}
}
