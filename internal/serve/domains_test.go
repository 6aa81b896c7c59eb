//go:build unix

package serve

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testDomains edits the domain files of a server, as an operator of envoyproxy/ratelimit
// would: a domain becomes known without a restart, a bad file changes nothing and is counted,
// and a changed number refills nobody.
func testDomains(t *testing.T, bin string) {
	w := newSandbox(t, bin)
	if err := os.Mkdir(filepath.Join(w.dir, "rules"), 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name, domain string, requests int) {
		t.Helper()
		w.write(name+".new", fmt.Sprintf("domain: %s\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: %d } }]\n", domain, requests))
		if err := os.Rename(filepath.Join(w.dir, name+".new"), filepath.Join(w.dir, "rules", name)); err != nil {
			t.Fatal(err)
		}
	}
	put("shop.yaml", "shop", 2)
	s := w.start(nil, nil, "--rules=rules", "--listen.gateway=off", "--listen.admin=127.0.0.1:0", "--listen.rls=127.0.0.1:0", "--listen.rls_http=127.0.0.1:0")
	first := s.await(1, "serving")
	at, admin := first["rls_http"].(string), first["admin"].(string)
	ask := func(domain, user string) int {
		t.Helper()
		question := fmt.Sprintf(`{"domain":%q,"descriptors":[{"entries":[{"key":"user","value":%q}]}]}`, domain, user)
		answer, err := once.Post(at+"/json", "application/json", strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	reloads := func(outcome string) float64 {
		return w.metric(admin, `tidegate_rules_reloads_total{outcome="`+outcome+`"}`)
	}
	for i, want := range []int{200, 200, 429} {
		if got := ask("shop", "ann"); got != want {
			t.Errorf("request %d of 2: %d, want %d", i, got, want)
		}
	}
	for range 2 { // no more, as refusals count
		if got := ask("shop", "bob"); got != http.StatusOK {
			t.Errorf("bob is answered %d", got)
		}
	}
	put("more.yaml", "more", 0)
	w.until("a domain is known", func() bool { return ask("more", "ann") == http.StatusTooManyRequests })

	w.write("rules/bad.yaml", "domain: bad\ndescriptors: [{ key: user, rate_limit: { unit: foo, requests_per_unit: 1 } }]\n")
	put("shop.yaml", "shop", 100)
	w.until("a failure is counted", func() bool { return reloads("failed") > 0 })
	if got := ask("shop", "ann"); got != http.StatusTooManyRequests {
		t.Errorf("while a file is bad, others hold: %d", got)
	}
	put("shop.yaml", "shop", 3)
	if err := os.Remove(filepath.Join(w.dir, "rules", "bad.yaml")); err != nil {
		t.Fatal(err)
	}
	w.until("the files are in force again", func() bool { return reloads("ok") == 2 && w.metric(admin, "tidegate_rules_current") == 1 })
	for i, want := range []int{200, 429} {
		if got := ask("shop", "bob"); got != want {
			t.Errorf("request %d of 3: %d, want %d", i+2, got, want)
		}
	}
}
