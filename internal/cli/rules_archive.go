package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulepack"
	"tidegate.dev/tidegate/internal/serve/origins"
	"tidegate.dev/tidegate/internal/telemetry/auditlog"
	"tidegate.dev/tidegate/rules/source"
)

// archived has the options of those verbs of tidegate rules that are about a source.
type archived struct {
	source             string
	user, passwordFile string
	tokenFile          string
	author, reason     string
	expect, toRevision string
	unchecked, follow  bool
	audit              string
}

func (a *archived) flags(flags *flag.FlagSet) {
	const about = "`SOURCE` of the rules: redis://HOST:6379#NAME, etcd://HOST:2379/PREFIX, dogma://HOST/PROJECT/REPO/PATH"
	flags.StringVar(&a.source, "to", "", about+"; its certificates and, without --server, its token are those of the flags for a server")
	flags.StringVar(&a.source, "from", "", about)
	flags.StringVar(&a.user, "user", "", "`NAME` by which to log in at the source")
	flags.StringVar(&a.passwordFile, "password-file", "", "`FILE` with the password of the source")
	flags.StringVar(&a.tokenFile, "source-token-file", "", "`FILE` with the token of the source, if that of --token-file is the server's")
	flags.StringVar(&a.author, "author", "", "`NAME` of who publishes (TIDEGATE_AUTHOR; by default you on this machine)")
	flags.StringVar(&a.reason, "reason", "", "`TEXT` why, for whoever looks at this later")
	flags.StringVar(&a.expect, "expect", "", "with push, publish only if this `REVISION` is still the newest")
	flags.StringVar(&a.toRevision, "to-revision", "", "with rollback, the `REVISION` to publish again, as in history")
	flags.BoolVar(&a.unchecked, "unchecked", false, "with push, publish rules that do not load or whose tests fail")
	flags.BoolVar(&a.follow, "follow", false, "with publish, go on and publish whenever the files change")
	flags.StringVar(&a.audit, "audit", "", "audit log `FILE` that gets an entry, as admin.audit of serve (TIDEGATE_AUDIT)")
}

// answer prints the error of a verb, if there is one, and returns the exit code.
func (o *rulesOptions) answer(env Env, err error) int {
	var use usageError
	var wrong diag.List
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &use):
		return misused(env, "rules", "%v", err)
	case errors.As(err, &wrong):
		wrong.Write(env.Stderr, false)
	default:
		fmt.Fprintln(env.Stderr, "tidegate rules:", strings.Map(graphicLine, err.Error()))
	}
	return exitFound
}

// graphicLine is graphic for texts of several lines.
func graphicLine(r rune) rune {
	if r == '\n' {
		return r
	}
	return graphic(r)
}

// open returns the source that was named.
func (o *rulesOptions) open(env Env) (source.Origin, error) {
	a := &o.archived
	if a.source == "" {
		return nil, usageError("name the source: --to redis://HOST:6379, or --to etcd://HOST:2379/tidegate/rules")
	}
	if !origins.IsRemote(a.source) {
		return nil, usageError(fmt.Sprintf("%q is not a source: write, for example, redis://HOST:6379 or etcd://HOST:2379/tidegate/rules", a.source))
	}
	r := &o.remote
	token := a.tokenFile
	if token == "" && r.server == "" {
		token = r.tokenFile
	}
	if token == "" && r.server == "" && env.Getenv("TIDEGATE_TOKEN") == "" {
		token = env.Getenv("TIDEGATE_TOKEN_FILE")
	}
	origin, err := origins.Open(a.source, origins.Options{
		TokenFile: token, User: a.user, PasswordFile: a.passwordFile,
		CA:   cmp.Or(r.caFile, env.Getenv("TIDEGATE_CA_FILE")),
		Cert: cmp.Or(r.certFile, env.Getenv("TIDEGATE_CERT_FILE")), Key: cmp.Or(r.keyFile, env.Getenv("TIDEGATE_KEY_FILE")),
	})
	if err != nil {
		return nil, usageError(err.Error())
	}
	return origin, nil
}

// openArchive is open for a source that keeps revisions.
func (o *rulesOptions) openArchive(env Env) (source.Archive, error) {
	origin, err := o.open(env)
	if err != nil {
		return nil, err
	}
	archive, ok := origin.(source.Archive)
	if !ok {
		_ = origin.Close() // nothing was asked of it
		return nil, fmt.Errorf("%s can be followed, but keeps no revisions and takes none: publish where its files come from", origin.Name())
	}
	return archive, nil
}

// who returns the author: as the flag says, or whoever calls the command.
func (o *rulesOptions) who(env Env) string {
	if name := cmp.Or(o.archived.author, env.Getenv("TIDEGATE_AUTHOR")); name != "" {
		return name
	}
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = cmp.Or(u.Username, name)
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// note writes an entry into the audit log, if there is one.
func (o *rulesOptions) note(env Env, action string, b *source.Bundle, from, to, at string, failed error) error {
	file := cmp.Or(o.archived.audit, env.Getenv("TIDEGATE_AUDIT"))
	if file == "" {
		return nil
	}
	log, err := auditlog.Open(auditlog.Options{File: file})
	if err != nil {
		return err
	}
	e := auditlog.Entry{
		Who: b.Author, Via: "local", Action: "rules", Reason: b.Reason, Result: admin.Done,
		What: map[string]any{"word": action, "source": at, "from": from, "to": to, "hash": b.Hash},
	}
	if failed != nil {
		e.Result, e.Error = admin.Failed, failed.Error()
	}
	return errors.Join(log.Append(e), log.Close())
}

// hinted adds a hint to the error of a source that cannot be reached.
func hinted(o source.Origin, err error) error {
	_, unresolved := errors.AsType[*net.DNSError](err)
	if op, ok := errors.AsType[*net.OpError](err); unresolved || ok && op.Op == "dial" {
		return fmt.Errorf("%w; is the server of %s running, and is this its address?", err, o.Name())
	}
	return err
}

// history returns the revisions of a source, the newest first.
func history(ctx context.Context, a source.Archive) ([]source.Edition, error) {
	all, err := a.History(ctx)
	return all, hinted(a, err)
}

// newest returns the newest revision; the zero value means that there is none.
func newest(ctx context.Context, a source.Archive) (source.Edition, error) {
	all, err := history(ctx, a)
	if err != nil || len(all) == 0 {
		return source.Edition{}, err
	}
	return all[0], nil
}

// revisionOf returns the revision that an operator means: by its name, or by 12 digits of its hash or
// more.
func revisionOf(ctx context.Context, a source.Archive, text string) (source.Edition, error) {
	all, err := history(ctx, a)
	if err != nil {
		return source.Edition{}, err
	}
	for _, e := range all {
		if rulepack.Means(text, e.Revision) || len(text) >= 12 && strings.HasPrefix(e.Hash, text) {
			return e, nil
		}
	}
	return source.Edition{}, fmt.Errorf("%s has no revision %s: tidegate rules history lists those that it keeps", a.Name(), text)
}

// sourceHistory runs tidegate rules history of a source.
func (o *rulesOptions) sourceHistory(ctx context.Context, env Env, args []string) error {
	if len(args) > 0 {
		return usageError(fmt.Sprintf("history takes no arguments, but got %q", args[0]))
	}
	a, err := o.openArchive(env)
	if err != nil {
		return err
	}
	defer a.Close()
	all, err := history(ctx, a)
	if err != nil {
		return err
	}
	if o.json {
		shown := []edition{} // printed as [] in JSON
		for _, e := range all {
			shown = append(shown, asJSON(e))
		}
		printJSON(env, shown)
		return nil
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REVISION\tRULES\tPUBLISHED\tAUTHOR\tREASON")
	for _, e := range all {
		at := "-"
		if !e.At.IsZero() {
			at = e.At.UTC().Format("2006-01-02 15:04:05 UTC")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", orDash(e.Revision), orDash(e.Hash[:min(len(e.Hash), shownHash)]), at, cmp.Or(strings.Map(graphic, e.Author), "-"), cmp.Or(strings.Map(graphic, e.Reason), "-"))
	}
	_ = w.Flush() // what does not reach standard output is not ours to mend
	return nil
}

// edition is a revision as JSON.
type edition struct {
	Revision  string    `json:"revision"`
	Hash      string    `json:"hash,omitempty"`
	Published time.Time `json:"published,omitzero"`
	Author    string    `json:"author,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Was       string    `json:"was,omitempty"`
	Source    string    `json:"source,omitempty"`
	Unchanged bool      `json:"unchanged,omitempty"`
}

func asJSON(e source.Edition) edition {
	return edition{Revision: e.Revision, Hash: e.Hash, Published: e.At, Author: e.Author, Reason: e.Reason}
}

// sourcePull runs tidegate rules pull from a source.
func (o *rulesOptions) sourcePull(ctx context.Context, env Env, args []string) error {
	if len(args) != 1 {
		return usageError("name the folder that the files are written to: tidegate rules pull before/")
	}
	b, err := o.fetch(ctx, env, o.revision)
	if err != nil {
		return err
	}
	if err := writeFiles(args[0], admin.PastFiles{Binary: b.Files}); err != nil {
		return err
	}
	if o.json {
		printJSON(env, asJSON(b.Edition))
		return nil
	}
	fmt.Fprintf(env.Stdout, "%s of revision %s in %s\n", plural(len(b.Files), "file"), valueText(b.Revision), args[0])
	printMains(env, b.Mains())
	return nil
}

// fetch returns a revision of the source; "" is the newest.
func (o *rulesOptions) fetch(ctx context.Context, env Env, revision string) (*source.Bundle, error) {
	origin, err := o.open(env)
	if err != nil {
		return nil, err
	}
	defer origin.Close()
	archive, ok := origin.(source.Archive)
	if revision == "" {
		b, err := origin.Next(ctx, "")
		if b == nil && err == nil {
			err = fmt.Errorf("%s does not answer", origin.Name())
		}
		return b, hinted(origin, err)
	}
	if !ok {
		return nil, fmt.Errorf("%s keeps no revisions: leave out --revision for the newest", origin.Name())
	}
	e, err := revisionOf(ctx, archive, revision)
	if err != nil {
		return nil, err
	}
	return archive.Get(ctx, e.Revision)
}
