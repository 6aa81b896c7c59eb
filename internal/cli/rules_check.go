package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules/lint"
	"tidegate.dev/tidegate/rules/source"
)

// checkFor returns what rules of that name have to pass before they are published. A server that is
// named judges them together with its other layers: they may need what these have, or contradict
// it.
func (o *rulesOptions) checkFor(ctx context.Context, env Env, archive source.Archive, name string) func(*source.Bundle) error {
	if o.remote.server == "" {
		return func(*source.Bundle) error {
			if err := lintRules(name, true); err != nil {
				return err
			}
			return testRules(ctx, name)
		}
	}
	return func(b *source.Bundle) error {
		if b == nil { // there is nothing to ask about
			return nil
		}
		if err := lintRules(name, false); err != nil {
			return err
		}
		if err := o.askServer(ctx, env, archive.Name(), b); err != nil {
			return err
		}
		return testRules(ctx, name)
	}
}

// askServer has a server try rules in the place of its layer of that name. Nothing is put in force.
func (o *rulesOptions) askServer(ctx context.Context, env Env, layer string, b *source.Bundle) error {
	r := &o.remote
	if err := r.find(env); err != nil {
		return usageError(err.Error())
	}
	r.timeout = planTimeout
	q := proposalOf(layer, b)
	q.SkipKeys = true
	var p admin.Plan
	if err := r.post(ctx, "/rules/plan", q, &p); err != nil {
		return &outageError{fmt.Errorf("nothing is published: %w", err)}
	}
	if !p.Valid { // they may load once another layer changes
		return &outageError{fmt.Errorf("nothing is published: %s would refuse these rules:\n%s", r.at, strings.TrimRight(p.Problems.Error(), "\n"))}
	}
	return nil
}

// proposalOf returns a bundle as the admin listener takes it, in the place of a layer.
func proposalOf(layer string, b *source.Bundle) admin.Proposal {
	q := admin.Proposal{Layer: layer, Main: b.Main, Over: b.Over, Files: make(map[string]string, len(b.Files))}
	for name, text := range b.Files {
		q.Files[name] = string(text)
	}
	return q
}

// readRules reads rules, and checks those that it has read: somebody may be writing them. Without
// a check they are published as they are.
func readRules(name string, check func(*source.Bundle) error) (*source.Bundle, error) {
	b, err := source.ReadBundle(name)
	for tries := 0; check != nil && tries < 5; tries++ {
		if wrong := check(b); wrong != nil { // which says more than err
			return nil, wrong
		}
		if err != nil {
			return nil, err
		}
		was := b.Hash
		if b, err = source.ReadBundle(name); err == nil && b.Hash == was {
			return b, nil
		}
	}
	if check != nil && err == nil {
		err = fmt.Errorf("%s changes all the time", name)
	}
	return b, err
}

// lintRules returns what is wrong with rules by themselves. If they are not to stand alone, what
// keeps them from being loaded is not looked at: another layer may have the names that they lack.
func lintRules(name string, alone bool) error {
	var wrong diag.List
	for _, p := range lint.File(name, lint.Options{}) {
		if p.Severity == diag.Error && p.Waived == "" && (alone || p.Check != "") {
			wrong = append(wrong, p)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return wrong
}

// testRules runs the tests of rules, and returns the first that fails; nil if none does.
func testRules(ctx context.Context, name string) error {
	files, err := testsOf(name)
	if err != nil {
		return err
	}
	for _, file := range files {
		t := runTest(ctx, file)
		switch {
		case t.report == nil:
			return t.problems
		case t.report.Failed() > 0:
			return fmt.Errorf("%s: %s: run tidegate test %s", file, firstFailure(t), file)
		}
	}
	return nil
}

// firstFailure returns what a test found.
func firstFailure(t tested) string {
	for _, c := range t.report.Cases {
		for _, f := range c.Failures {
			return fmt.Sprintf("line %d: %s (%s)", f.Line, f.Message, plural(t.report.Failed(), "case")+" failed")
		}
	}
	return plural(t.report.Failed(), "case") + " failed"
}

// testsOf returns the test files of rules: those of the folder, or the one beside the file.
func testsOf(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		files, err := testFiles(name)
		if err != nil {
			return nil, nil // it has none
		}
		return files, nil
	}
	ending := filepath.Ext(name)
	beside := strings.TrimSuffix(name, ending) + "_test" + ending
	if _, err := os.Stat(beside); err != nil {
		return nil, nil
	}
	return []string{beside}, nil
}
