package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that grows beyond memory, whichever of those that are watched it is, is a
// file that cannot be read: what is in force stays, and the process goes on.
func TestFileThatOutgrowsMemory(t *testing.T) {
	const rules = `version: 1
include: [more.yaml]
identify: { who: client header X-Who }
lists: { banned: file banned.txt }
rules:
  - { name: api, per: everyone, limits: 10/hour }
  - { name: out, when: { who: in banned }, deny: true }
`
	for _, large := range []string{"rules.yaml", "more.yaml", "banned.txt"} {
		t.Run(large, func(t *testing.T) {
			bothModes(t, func(t *testing.T, p pace) {
				dir := t.TempDir()
				texts := map[string]string{"rules.yaml": rules, "more.yaml": "version: 1\n", "banned.txt": "mallory\n"}
				for name, text := range texts {
					write(t, filepath.Join(dir, name), text)
				}
				w := start(t, filepath.Join(dir, "rules.yaml"), p)
				do(t, os.Truncate(filepath.Join(dir, large), 20<<30))
				s := w.wantsFailure(10)
				if !strings.Contains(s.LastError, "is larger than 16 MiB") || !w.bans("mallory") {
					t.Errorf("%+v, mallory is banned: %t", s, w.bans("mallory"))
				}
				replace(t, filepath.Join(dir, large), texts[large])
				w.wants(10)
			})
		})
	}
}
