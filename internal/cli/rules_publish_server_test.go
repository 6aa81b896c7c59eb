package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
)

// A worker that is given a server publishes nothing that clashes with the other layers there, and
// goes on by itself when these have changed.
func TestPublishAsksServer(t *testing.T) {
	p := newPublishing(t)
	push := func(folder, url string) {
		t.Helper()
		if code, out, problems := runRules(t, "push", folder, "--to", url, "--reason", "a test"); code != exitOK {
			t.Fatalf("exit %d: %s%s", code, out, problems)
		}
	}
	company, folder := p.url+"#company", t.TempDir()
	companyHas := func(rule string) {
		t.Helper()
		p.writeFile(folder, "rules.yaml", "version: 1\nrules: [{ name: "+rule+", match: /company/, per: ip, limits: 9/minute }]\n")
		push(folder, company)
	}
	companyHas("all")
	push(p.folder, p.url)
	_, at := serving(t, theCommand(t), "--rules="+company, "--rules="+p.url)
	companyHas("bots")
	testdep.Eventually(t, "the server has the rules of the company", func() bool {
		var is admin.RulesStatus
		return json.Unmarshal([]byte(printed(t, "rules", "status", "--json", "--server", at)), &is) == nil && strings.HasPrefix(is.Instances[0].Layers[0].Revision, "2-")
	})

	p.writeFile(p.folder, "rules.yaml", "version: 1\nrules: [{ name: bots, per: ip, limits: 5/minute }]\n")
	_, wrong, stop := p.follow(p.folder, "--server", at)
	defer stop()
	testdep.Eventually(t, "it says why", func() bool {
		return strings.Contains(wrong.String(), "would refuse these rules") && strings.Contains(wrong.String(), "rule `bots` is already defined at")
	})
	p.stays(1)
	companyHas("all")
	p.revisions(2)
}
