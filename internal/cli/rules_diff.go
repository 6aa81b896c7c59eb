package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// diff runs tidegate rules diff.
func (o *rulesOptions) diff(ctx context.Context, env Env, args []string) error {
	var old, now *source.Bundle
	var err error
	names := args
	switch {
	case len(args) == 1 && o.archived.source != "":
		names = []string{"newest", args[0]}
		if old, err = o.fetch(ctx, env, ""); err == nil {
			now, err = o.operand(ctx, env, args[0])
		}
	case len(args) == 2:
		if old, err = o.operand(ctx, env, args[0]); err == nil {
			now, err = o.operand(ctx, env, args[1])
		}
	default:
		return usageError("name two folders or revisions, or one with --from SOURCE: tidegate rules diff rules/ --from redis://HOST:6379")
	}
	if err != nil {
		return err
	}
	d := compareBundles(old, now)
	if o.json {
		printJSON(env, d)
		return nil
	}
	d.print(env, names)
	return nil
}

// operand returns what an argument of diff stands for: a file or folder, or a revision.
func (o *rulesOptions) operand(ctx context.Context, env Env, name string) (*source.Bundle, error) {
	if _, err := os.Stat(name); err == nil {
		return source.ReadBundle(name)
	}
	if o.archived.source == "" {
		return nil, usageError(fmt.Sprintf("there is no file or folder %q; if it is a revision, name its source with --from", name))
	}
	return o.fetch(ctx, env, name)
}

// bundleDiff is what differs between two rule sets.
type bundleDiff struct {
	Added    []string       `json:"added"`
	Removed  []string       `json:"removed"`
	Changed  []string       `json:"changed"`
	Main     []string       `json:"main,omitempty"` // old and new, if they differ; layers with commas between them
	Text     string         `json:"text"`           // unified
	Counters []rules.Change `json:"counters"`       // that do not simply go on
	Unread   string         `json:"unread,omitempty"`
}

func compareBundles(old, now *source.Bundle) bundleDiff {
	d := bundleDiff{Added: []string{}, Removed: []string{}, Changed: []string{}, Counters: []rules.Change{}} // printed as [] in JSON
	if was, is := old.Mains(), now.Mains(); !slices.Equal(was, is) {
		d.Main = []string{strings.Join(was, ","), strings.Join(is, ",")}
	}
	both := maps.Clone(old.Files)
	maps.Copy(both, now.Files)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(both)) {
		was, had := old.Files[name]
		is, has := now.Files[name]
		oldName, newName := "old/"+name, "new/"+name
		switch {
		case had && has && bytes.Equal(was, is):
			continue
		case !had:
			d.Added = append(d.Added, name)
			oldName = "/dev/null"
		case !has:
			d.Removed = append(d.Removed, name)
			newName = "/dev/null"
		default:
			d.Changed = append(d.Changed, name)
		}
		if !utf8.Valid(was) || !utf8.Valid(is) {
			fmt.Fprintf(&text, "binary files %s and %s differ\n", oldName, newName)
			continue
		}
		text.Write(diff.Diff(oldName, was, newName, is))
	}
	d.Text = text.String()
	wasSet, err := loadBundle(old)
	var isSet *rules.Set
	if err == nil {
		isSet, err = loadBundle(now)
	}
	if err != nil {
		d.Unread = err.Error()
		return d
	}
	d.Counters = append(d.Counters, rules.Compare(wasSet, isSet)...)
	return d
}

// loadBundle compiles the rules of a bundle.
func loadBundle(b *source.Bundle) (*rules.Set, error) {
	return rules.LoadLayers(b.Layers(cmp.Or(b.Revision, "rules")), rules.Config{MergeDomains: true})
}

func (d *bundleDiff) print(env Env, names []string) {
	if len(d.Added)+len(d.Removed)+len(d.Changed) == 0 && d.Main == nil {
		fmt.Fprintf(env.Stdout, "%s and %s are the same\n", names[0], names[1])
		return
	}
	for line := range strings.Lines(d.Text) {
		line = strings.Map(graphic, strings.TrimRight(line, "\r\n"))
		switch {
		case strings.HasPrefix(line, "diff "):
			line = env.paint(bold, line)
		case strings.HasPrefix(line, "+"):
			line = env.paint(green, line)
		case strings.HasPrefix(line, "-"):
			line = env.paint(red, line)
		}
		fmt.Fprintln(env.Stdout, line)
	}
	fmt.Fprintf(env.Stdout, "\nfiles: %d changed, %d added, %d removed\n", len(d.Changed), len(d.Added), len(d.Removed))
	if d.Main != nil {
		fmt.Fprintf(env.Stdout, "the rules begin with %s instead of %s\n", mainText(d.Main[1]), mainText(d.Main[0]))
	}
	switch {
	case d.Unread != "":
		fmt.Fprintf(env.Stdout, "counters cannot be compared: %s\n", strings.Map(graphicLine, d.Unread))
	case len(d.Counters) == 0:
		fmt.Fprintln(env.Stdout, "all counters continue")
	}
	for _, c := range d.Counters {
		fmt.Fprintln(env.Stdout, strings.Map(graphic, c.String()))
	}
}

func mainText(name string) string {
	if name == "" {
		return "all rule files of the folder"
	}
	return valueText(name)
}
