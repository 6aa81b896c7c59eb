package cli

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules/source/dogma/dogmatest"
)

// Rules are pushed to Central Dogma as commits with author and reason, listed, compared, brought
// back, and fetched. What it cannot take is told with what to do.
func TestRulesInCentralDogma(t *testing.T) {
	stand := dogmatest.New("shop", "limits", "hush")
	server := httptest.NewServer(stand)
	defer server.Close()
	at := "dogma://" + server.Listener.Addr().String() + "/shop/limits"
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	token := write("token", "hush\n")
	rules := filepath.Dir(write("rules/rules.yaml", "version: 1\nlists: { office: file lists/office.txt }\nrules: [{ name: api, per: ip, limits: 5/hour }]\n"))
	write("rules/lists/office.txt", "192.0.2.0/24\n")
	f := func(want int, part string, args ...string) {
		t.Helper()
		code, out, problems := runRules(t, args...)
		if text := out + problems; code != want || !strings.Contains(text, part) {
			t.Errorf("%q: exit %d, want %q:\n%s", args, code, part, text)
		}
	}
	to := []string{"--to", at + "/gateway/", "--token-file", token, "--author", "bob"}
	do := func(want int, part string, args ...string) {
		t.Helper()
		f(want, part, append(args, to...)...)
	}
	do(exitOK, "revision 2 is published, the first one, with 2 files", "push", rules, "--reason", "open the shop")
	do(exitOK, "has these rules already: revision 2", "push", rules, "--reason", "again")
	stand.Commit("elsewhere", map[string]string{"/other/rules.yaml": "# other\n"})
	do(exitOK, "has these rules already", "push", rules, "--reason", "again")
	write("rules/rules.yaml", "version: 1\nrules: [{ name: api, per: ip, limits: 9/hour }]\n")
	do(exitOK, "-rules: [{ name: api, per: ip, limits: 5/hour }]\n+rules: [{ name: api, per: ip, limits: 9/hour }]", "diff", rules)
	do(exitOK, "revision 4 is published, with 1 file", "push", rules, "--reason", "sale")
	do(exitOK, "bob     sale\n2 ", "history")
	do(exitFound, "the newest revision is 4, by bob: sale", "push", rules, "--reason", "late", "--expect", "2")
	do(exitOK, "revision 5 is published, with 2 files; it was 4", "rollback", "--to-revision", "2", "--reason", "sale is over")
	do(exitOK, "2 files of revision 5", "pull", filepath.Join(dir, "there"))
	if text, err := os.ReadFile(filepath.Join(dir, "there", "lists", "office.txt")); err != nil || string(text) != "192.0.2.0/24\n" {
		t.Errorf("%q, %v", text, err)
	}

	f(exitFound, "token", "push", rules, "--reason", "x", "--to", at+"/gateway/")
	one := []string{"--to", at + "/one/limits.yaml", "--token-file", token, "--reason", "x"}
	f(exitFound, "is one rule file: publish a set that begins with limits.yaml, or name its folder with a slash at the end", append([]string{"push", rules}, one...)...)
	f(exitOK, "is published, the first one", append([]string{"push", write("one/limits.yaml", "version: 1\nrules: []\n")}, one...)...)
}
