package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/rules/source"
)

// publish runs tidegate rules publish.
func (o *rulesOptions) publish(ctx context.Context, env Env, args []string) error {
	if len(args) != 1 {
		return usageError("name the folder or file to publish: tidegate rules publish rules/ --to SOURCE")
	}
	archive, err := o.openArchive(env)
	if err != nil {
		return err
	}
	defer archive.Close()
	w := worker{o: o, env: env, folder: args[0], archive: archive, pace: publishPace}
	if o.archived.follow {
		w.run(ctx)
		return nil
	}
	return w.once(ctx, true)
}

// workerPace is how often a worker looks, and how long it waits.
type workerPace struct {
	look  time.Duration // at the files
	quiet time.Duration // for which the files must not have changed
	visit time.Duration // to the source, while nothing changes
	retry time.Duration // after the source failed; grows to ten times that
}

var publishPace = workerPace{look: time.Second, quiet: 300 * time.Millisecond, visit: 10 * time.Second, retry: time.Second}

// worker publishes the rules of a folder in a source.
type worker struct {
	o       *rulesOptions
	env     Env
	folder  string
	archive source.Archive
	pace    workerPace

	told    string // the last that was told, so that it is told once
	settled string // the files about which everything is done; "" at the start
	head    string // the newest revision when that was so; "" at the start
	away    bool   // the source did not answer
}

// tell prints a message, unless it was the last one.
func (w *worker) tell(to io.Writer, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text == w.told {
		return
	}
	w.told = text
	fmt.Fprintf(to, "%s %s\n", time.Now().UTC().Format(time.RFC3339), strings.Map(graphicLine, text))
}

// run publishes whatever passes until ctx ends.
func (w *worker) run(ctx context.Context) {
	w.tell(w.env.Stdout, "following %s, publishing in %s", w.folder, w.archive.Name())
	retry := w.pace.retry
	visited := time.Time{}
	for {
		pause := w.pace.look
		now, err := filesMark(w.folder)
		switch {
		case err != nil:
			w.tell(w.env.Stderr, "the rules cannot be read: %v", err)
		case now != w.settled && !w.quiet(ctx, now):
			pause = w.pace.quiet
		case now != w.settled || time.Since(visited) > w.pace.visit:
			if err = w.once(ctx, now != w.settled); ctx.Err() != nil {
				return
			}
			visited = time.Now()
			pause, retry = w.retryAfter(err, now, retry)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// retryAfter returns how long to wait after an attempt, and after the next that fails.
func (w *worker) retryAfter(err error, files string, retry time.Duration) (pause, next time.Duration) {
	var outage *outageError
	if errors.As(err, &outage) {
		w.away = true
		w.tell(w.env.Stderr, "the source does not take the rules, and is tried again: %v", err)
		return retry/2 + rand.N(retry), min(2*retry, 10*w.pace.retry)
	}
	if w.away {
		w.away = false
		w.tell(w.env.Stdout, "%s answers again", w.archive.Name())
	}
	if err != nil {
		w.tell(w.env.Stderr, "not published, until the files change: %v", err)
	}
	w.settled = files
	return w.pace.look, w.pace.retry
}

// quiet reports whether nobody is writing the files. Those that differ from the last commit may
// be about to become the next one: git writes the files before it says which commit they are.
func (w *worker) quiet(ctx context.Context, files string) bool {
	if !w.rests(ctx, files, w.pace.quiet) {
		return false
	}
	return !readCheckout(ctx, w.folder).dirty || w.rests(ctx, files, 4*w.pace.quiet)
}

// rests reports whether the files stay the same for a while.
func (w *worker) rests(ctx context.Context, files string, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
	}
	again, err := filesMark(w.folder)
	return err == nil && again == files && !gitBusy(ctx, w.folder)
}

// outageError is an error of the source, not of the rules.
type outageError struct{ err error }

func (e *outageError) Error() string { return e.err.Error() }
func (e *outageError) Unwrap() error { return e.err }

// once publishes the rules if they pass and the source needs them. If they are not fresh, it only
// looks whether the source has lost something.
func (w *worker) once(ctx context.Context, fresh bool) error {
	for {
		all, err := history(ctx, w.archive)
		if err != nil {
			return &outageError{err}
		}
		if !fresh && len(all) > 0 && !w.setBack(all[0].Revision) {
			return nil
		}
		c := readCheckout(ctx, w.folder)
		b, err := readRules(w.folder, w.o.checkFor(ctx, w.env, w.archive, w.folder))
		if err != nil {
			return err
		}
		if readCheckout(ctx, w.folder) != c {
			continue // another commit was checked out meanwhile
		}
		w.sign(b, &c)
		why, held, err := w.need(ctx, b, &c, all)
		if err != nil {
			return &outageError{err}
		}
		head := ""
		if len(all) > 0 {
			head = all[0].Revision
		}
		if held && !w.o.archived.follow {
			return errors.New("not published: " + why)
		}
		if why != "" {
			w.tell(w.env.Stdout, "%s", why)
			w.head = head
			return nil
		}
		revision, err := w.archive.Publish(ctx, b, head)
		if errors.Is(err, source.ErrConflict) {
			continue // what is there now decides
		}
		if auditErr := w.o.note(w.env, "publish", b, head, revision, w.archive.Name(), err); auditErr != nil {
			w.tell(w.env.Stderr, "%v", auditErr)
		}
		if err != nil {
			return &outageError{err}
		}
		w.head = revision
		w.tell(w.env.Stdout, "revision %s is published: %s", revision, byText(b.Author, b.Reason))
		return nil
	}
}

// setBack reports whether the source has lost revisions, as after a failover: the newest comes
// before the one that was the newest.
func (w *worker) setBack(newest string) bool {
	number := func(revision string) (int64, bool) {
		text, digest, _ := strings.Cut(revision, "-")
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil && !strings.Contains(digest, "-") // one that was edited by hand may be lower
	}
	is, known := number(newest)
	was, known2 := number(w.head)
	return known && known2 && is < was
}

// sign says who publishes and why.
func (w *worker) sign(b *source.Bundle, c *checkout) {
	a := &w.o.archived
	b.Author, b.Reason = cmp.Or(a.author, c.author), a.reason
	if c.dirty || b.Author == "" {
		b.Author = w.o.who(w.env)
	}
	if mark := c.reason(); a.reason == "" {
		b.Reason = cmp.Or(mark, "the files in "+w.folder+" have changed")
	} else if mark != "" {
		b.Reason += " [commit " + c.commit + "]"
	}
}

// need returns why the rules are not to be published; "" if they are. held means that the source
// does not have them, and they are held back.
func (w *worker) need(ctx context.Context, b *source.Bundle, c *checkout, all []source.Edition) (why string, held bool, err error) {
	if len(all) == 0 {
		return "", false, nil
	}
	head := all[0]
	if head.Hash == "" { // written by other means
		is, err := w.archive.Get(ctx, head.Revision)
		if err != nil {
			return "", false, err
		}
		head.Hash = is.Sum()
	}
	if head.Hash == b.Hash {
		return fmt.Sprintf("%s has these rules: revision %s", w.archive.Name(), head.Revision), false, nil
	}
	if from := commitOf(head.Reason); from != "" && c.commit != "" && from != c.commit {
		switch relation(ctx, w.folder, c.commit, from) {
		case earlier:
			return fmt.Sprintf("revision %s is from a later commit than this checkout: nothing is published until it has that", head.Revision), true, nil
		case unknownCommit:
			return fmt.Sprintf("revision %s is from commit %.12s, which this checkout does not have: nothing is published until it has, or until rules of another origin are pushed", head.Revision, from), true, nil
		case later:
			return "", false, nil
		}
	}
	// Somebody has published these rules since the last look, and somebody others after that.
	for _, e := range all[1:] {
		if w.head != "" && (head.Revision == w.head || e.Revision == w.head) {
			break
		}
		if e.Hash == b.Hash {
			return fmt.Sprintf("revision %s (%s) has replaced these rules, which were revision %s: they are published when the files change, or with tidegate rules push", head.Revision, byText(head.Author, head.Reason), e.Revision), true, nil
		}
	}
	return "", false, nil
}
