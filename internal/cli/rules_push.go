package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules/lint"
	"tidegate.dev/tidegate/rules/source"
)

// push is tidegate rules push.
func (o *rulesOptions) push(ctx context.Context, env Env, args []string) error {
	a := &o.archived
	switch {
	case len(args) != 1:
		return usageError("name the folder or file to publish: tidegate rules push rules/ --to SOURCE")
	case strings.TrimSpace(a.reason) == "":
		return usageError("say why, for whoever looks at this later: --reason TEXT")
	}
	archive, err := o.openArchive(env)
	if err != nil {
		return err
	}
	defer archive.Close()
	b, err := readRules(ctx, args[0], !a.unchecked)
	if err != nil {
		return err
	}
	b.Author, b.Reason = o.who(env), a.reason
	head, err := newest(ctx, archive)
	if err != nil {
		return err
	}
	if a.expect != "" {
		if expected, err := revisionOf(ctx, archive, a.expect); err != nil || expected.Revision != head.Revision {
			return o.conflict(ctx, archive, env, "push", b, head.Revision)
		}
	}
	if head.Revision != "" && head.Hash == b.Hash {
		return o.published(env, archive, b, head.Revision, head.Revision)
	}
	return o.put(ctx, env, archive, "push", b, head.Revision)
}

// rollback is tidegate rules rollback.
func (o *rulesOptions) rollback(ctx context.Context, env Env, args []string) error {
	a := &o.archived
	switch {
	case len(args) > 0:
		return usageError(fmt.Sprintf("rollback takes no arguments, but got %q: write --to-revision REVISION", args[0]))
	case a.toRevision == "":
		return usageError("say which revision: --to-revision REVISION; tidegate rules history lists them")
	case strings.TrimSpace(a.reason) == "":
		return usageError("say why, for whoever looks at this later: --reason TEXT")
	}
	archive, err := o.openArchive(env)
	if err != nil {
		return err
	}
	defer archive.Close()
	head, err := newest(ctx, archive)
	if err != nil {
		return err
	}
	e, err := revisionOf(ctx, archive, a.toRevision)
	if err != nil {
		return err
	}
	b, err := archive.Get(ctx, e.Revision)
	if err != nil {
		return err
	}
	again := &source.Bundle{Main: b.Main, Files: b.Files}
	again.Hash, again.Author, again.Reason = b.Hash, o.who(env), fmt.Sprintf("rollback to %s: %s", e.Revision, a.reason)
	if again.Hash == "" {
		again.Hash = b.Sum()
	}
	if e.Revision == head.Revision {
		return o.published(env, archive, again, head.Revision, head.Revision)
	}
	return o.put(ctx, env, archive, "rollback", again, head.Revision)
}

// put publishes a bundle on top of head, and tells.
func (o *rulesOptions) put(ctx context.Context, env Env, archive source.Archive, word string, b *source.Bundle, head string) error {
	revision, err := archive.Publish(ctx, b, head)
	if errors.Is(err, source.ErrConflict) {
		return o.conflict(ctx, archive, env, word, b, head)
	}
	if auditErr := o.note(env, word, b, head, revision, archive.Name(), err); err != nil || auditErr != nil {
		return errors.Join(err, auditErr)
	}
	return o.published(env, archive, b, revision, head)
}

// conflict says who was faster.
func (o *rulesOptions) conflict(ctx context.Context, archive source.Archive, env Env, word string, b *source.Bundle, head string) error {
	now, err := newest(ctx, archive)
	if err != nil {
		return errors.Join(source.ErrConflict, err)
	}
	text := "the newest revision is " + now.Revision
	if now.Revision == "" {
		text = "there is no revision"
	}
	if by := byText(now.Author, now.Reason); by != "" {
		text += ", " + by
	}
	err = fmt.Errorf("%s: %w: %s. Nothing was published: look at it with tidegate rules diff, and try again", archive.Name(), source.ErrConflict, text)
	return errors.Join(err, o.note(env, word, b, head, "", archive.Name(), source.ErrConflict))
}

// published tells which revision is the newest now.
func (o *rulesOptions) published(env Env, archive source.Archive, b *source.Bundle, revision, was string) error {
	if o.json {
		e := asJSON(b.Edition)
		e.Revision, e.Source, e.Unchanged = revision, archive.Name(), revision == was
		if !e.Unchanged {
			e.Was = was
		}
		printJSON(env, e)
		return nil
	}
	switch {
	case revision == was:
		fmt.Fprintf(env.Stdout, "%s has these rules already: revision %s\n", archive.Name(), revision)
	case was == "":
		fmt.Fprintf(env.Stdout, "%s: revision %s is published, the first one, with %s\n", archive.Name(), revision, plural(len(b.Files), "file"))
	default:
		fmt.Fprintf(env.Stdout, "%s: revision %s is published, with %s; it was %s\n", archive.Name(), revision, plural(len(b.Files), "file"), was)
	}
	return nil
}

// readRules reads rules, and checks those that it has read: somebody may be writing them.
func readRules(ctx context.Context, name string, check bool) (*source.Bundle, error) {
	b, err := source.ReadBundle(name)
	for tries := 0; check && tries < 5; tries++ {
		if err := checkRules(ctx, name); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		was := b.Hash
		if b, err = source.ReadBundle(name); err == nil && b.Hash == was {
			return b, nil
		}
	}
	if check && err == nil {
		err = fmt.Errorf("%s changes all the time", name)
	}
	return b, err
}

// checkRules returns what keeps rules from being published: mistakes, and tests that fail.
func checkRules(ctx context.Context, name string) error {
	if found := lint.File(name, lint.Options{}); found.HasErrors() {
		var wrong diag.List
		for _, p := range found {
			if p.Severity == diag.Error {
				wrong = append(wrong, p)
			}
		}
		return wrong
	}
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

// firstFailure says what a test found.
func firstFailure(t tested) string {
	for _, c := range t.report.Cases {
		for _, f := range c.Failures {
			return fmt.Sprintf("line %d: %s (%s)", f.Line, f.Message, plural(t.report.Failed(), "case")+" failed")
		}
	}
	return plural(t.report.Failed(), "case") + " failed"
}

// testsOf are the tests of rules: those of the folder, or the one beside the file.
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
