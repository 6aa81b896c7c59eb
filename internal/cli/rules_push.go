package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tidegate.dev/tidegate/rules/source"
)

// push runs tidegate rules push.
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
	check := o.checkFor(ctx, env, archive, args[0])
	if a.unchecked {
		check = nil
	}
	b, err := readRules(args[0], check)
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

// rollback runs tidegate rules rollback.
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
	again := &source.Bundle{Main: b.Main, Over: b.Over, Files: b.Files}
	again.Hash, again.Author, again.Reason = b.Hash, o.who(env), fmt.Sprintf("rollback to %s: %s", e.Revision, a.reason)
	if again.Hash == "" {
		again.Hash = b.Sum()
	}
	if e.Revision == head.Revision {
		return o.published(env, archive, again, head.Revision, head.Revision)
	}
	if o.remote.server != "" && !a.unchecked {
		if err := o.askServer(ctx, env, archive.Name(), again); err != nil {
			return err
		}
	}
	return o.put(ctx, env, archive, "rollback", again, head.Revision)
}

// put publishes a bundle as the revision after head, and prints which it is.
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

// conflict returns the error that somebody else has published meanwhile, and notes it in the audit log.
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

// published prints which revision is the newest now.
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
