package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
)

// runHistory runs tidegate rules history of a server.
func (o *rulesOptions) runHistory(ctx context.Context, env Env, args []string) int {
	if len(args) > 0 {
		return misused(env, "rules", "history takes no arguments, but got %q", args[0])
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "rules", "%v", err)
	}
	var past admin.PastRules
	if err := o.remote.get(ctx, "/rules/history", nil, &past); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate rules:", err)
		return exitFound
	}
	if o.json {
		return printJSON(env, past)
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULES\tREVISION\tIN FORCE SINCE\tAUTHOR\tREASON")
	for _, s := range past.Sets {
		since := s.Since.UTC().Format("2006-01-02 15:04:05 UTC")
		if s.InForce {
			since += " (now)"
		}
		revision := shownRevision(&admin.Layer{Revision: s.Revision})
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", orDash(s.Hash[:min(len(s.Hash), shownHash)]), cmp.Or(revision, "-"), since, orDash(s.Author), cmp.Or(strings.Map(graphic, s.Reason), "-"))
	}
	_ = w.Flush() // what does not reach standard output is not ours to mend
	if past.Incomplete != "" {
		fmt.Fprintf(env.Stdout, "%s there may be more: %s\n", env.paint(red, "warning:"), strings.Map(graphic, past.Incomplete))
	}
	return exitOK
}

// runPull runs tidegate rules pull from a server.
func (o *rulesOptions) runPull(ctx context.Context, env Env, args []string) int {
	if len(args) != 1 {
		return misused(env, "rules", "name the folder that the files are written to: tidegate rules pull before/")
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "rules", "%v", err)
	}
	past, err := o.pastFiles(ctx)
	if err == nil {
		err = writeFiles(args[0], past)
	}
	if err != nil {
		fmt.Fprintln(env.Stderr, "tidegate rules:", err)
		return exitFound
	}
	fmt.Fprintf(env.Stdout, "%s of %s in %s: in force since %s\n", plural(len(past.Files)+len(past.Binary), "file"),
		valueText(past.Hash[:min(len(past.Hash), shownHash)]), args[0], past.Since.UTC().Format(time.RFC3339))
	printMains(env, append([]string{past.Main}, past.Over...))
	return exitOK
}

// printMains tells where to begin with the files of a set.
func printMains(env Env, mains []string) {
	var shown []string
	for _, main := range mains {
		shown = append(shown, mainText(main))
	}
	switch {
	case len(mains) > 1:
		fmt.Fprintf(env.Stdout, "these are %d layers, in this order: %s\n", len(mains), strings.Join(shown, ", "))
	case mains[0] != "":
		fmt.Fprintf(env.Stdout, "the rules begin with %s\n", shown[0])
	}
}

// maxPulled is how long the answer with all files of a set may be.
const maxPulled = 160 << 20

// pastFiles asks for the files of a set; without a revision, of the one in force.
func (o *rulesOptions) pastFiles(ctx context.Context) (past admin.PastFiles, err error) {
	hash := o.revision
	if hash == "" {
		var all admin.PastRules
		if err := o.remote.get(ctx, "/rules/history", nil, &all); err != nil {
			return past, err
		}
		for _, s := range all.Sets {
			if s.InForce {
				hash = s.Hash
			}
		}
		if hash == "" {
			return past, errors.New("the rules in force are not in the history: name one of it with --revision")
		}
	}
	o.remote.most = maxPulled
	err = o.remote.get(ctx, "/rules/history/files", url.Values{"hash": {hash}}, &past)
	return past, err
}

// writeFiles writes a set to a folder that has nothing in it, or is not there.
func writeFiles(folder string, past admin.PastFiles) error {
	entries, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty: name another folder, so that no file is overwritten", folder)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder) // names come from elsewhere, and must not lead out of it
	if err != nil {
		return err
	}
	defer root.Close()
	for name, text := range past.Files {
		if err := writeIn(root, name, []byte(text)); err != nil {
			return err
		}
	}
	for name, text := range past.Binary {
		if err := writeIn(root, name, text); err != nil {
			return err
		}
	}
	return nil
}

func writeIn(root *os.Root, name string, text []byte) error {
	name = filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return root.WriteFile(name, text, 0o644)
}
