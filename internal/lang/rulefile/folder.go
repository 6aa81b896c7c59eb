package rulefile

import (
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// IsTest reports whether a file of that name holds tests of rules: *_test.yaml or
// *_test.yml. Folders and patterns leave such files out, so that tests can be kept
// beside the rules.
func IsTest(name string) bool {
	stem, ok := strings.CutSuffix(filepath.Base(name), ".yaml")
	if !ok {
		stem, ok = strings.CutSuffix(filepath.Base(name), ".yml")
	}
	return ok && strings.HasSuffix(stem, "_test")
}

// InFolder reports whether a file of that name is read as part of a folder of rules. Names that
// begin with a dot are skipped: Kubernetes and editors keep other versions under them.
func InFolder(name string) bool {
	ending := filepath.Ext(name)
	return (ending == ".yaml" || ending == ".yml") && !strings.HasPrefix(name, ".") && !IsTest(name)
}

// readFolder reads all rule files of a folder.
func (d *decoder) readFolder(name string) {
	l := d.layer()
	files, err := l.list(name)
	if err != nil {
		d.fail(diag.Pos{File: name}, "cannot list the folder: "+diag.Reason(err), "name a file, or a folder that may be read")
		return
	}
	for _, file := range files {
		d.readFile(file, diag.Pos{File: file}, nil)
	}
	if len(files) == 0 {
		d.fail(diag.Pos{File: l.FileName(name)}, "the folder has no *.yaml file with rules", "put a rule file there, such as "+diag.Quote(filepath.Join(name, "rules.yaml")))
	}
}
