package cli

import (
	"context"
	"flag"
	"fmt"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulediff"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// exitChanged is for --detailed-exitcode: there are changes.
const exitChanged = 3

var planCommand = command{
	name:    "plan",
	summary: "Show what a change of rules would do, and who would be refused.",
	help: `
Usage: tidegate plan [FLAGS] OLD NEW
       tidegate plan [FLAGS] --server URL [OLD] NEW

OLD and NEW are rule files or folders; - is standard input. Prints in words which
rules, tiers, lists and settings are added, removed or changed, which limits are
lowered, and which counters carry over or start empty.

With --server, a running server also compares NEW with the rules that it has in force,
and looks at its live keys, in its memory or in Redis: how many callers that are
admitted now would be refused, and some of their names. Nothing is charged, and nothing
is put in force. Of more than 10,000 keys of a rule in Redis it looks at a sample, and
says how far the estimate may be off. Without OLD, only the server compares. If the
server joins several layers, --layer says which of them NEW takes the place of.

Exits 0, or 1 if rules cannot be read or the server cannot be asked. With
--detailed-exitcode it exits 3 if there is a change.

Examples:
  tidegate plan rules.yaml new.yaml
  git show HEAD:rules.yaml | tidegate plan - rules.yaml
  tidegate plan --server http://127.0.0.1:9090 new.yaml
  tidegate plan --server http://127.0.0.1:9090 --layer redis://redis:6379#shop shop/
  tidegate plan --markdown old/ new/`,
	takes: takes{endings: []string{".yaml", ".yml"}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		var o planOptions
		flags.StringVar(&o.remote.server, "server", "", "`URL` of the admin listener of a server whose live keys are looked at")
		layerFlag(flags, &o.layer)
		o.remote.credentialFlags(flags)
		flags.BoolVar(&o.json, "json", false, "print JSON")
		flags.BoolVar(&o.markdown, "markdown", false, "print Markdown, for a pull request")
		flags.BoolVar(&o.detailed, "detailed-exitcode", false, "exit 3 if there are changes")
		return o.run
	},
}

type planOptions struct {
	remote                   remote
	layer                    string
	json, markdown, detailed bool
}

// rulesPlan is what changes. It is printed as JSON as it is.
type rulesPlan struct {
	Old     string            `json:"old,omitempty"`
	New     string            `json:"new"`
	Changes []rulediff.Change `json:"changes"`
	// Counters are those that do not simply carry over.
	Counters []rules.Change `json:"counters"`
	// Live is what a running server says.
	Live *livePlan `json:"live,omitempty"`
}

// livePlan is what a running server says of the new rules beside those it has in force.
type livePlan struct {
	Server string `json:"server"`
	admin.Plan
}

// layerFlag is for commands that have a server compare rules.
func layerFlag(flags *flag.FlagSet, layer *string) {
	flags.StringVar(layer, "layer", "", "the `LAYER` of the server that the new rules take the place of, as tidegate rules status names it; all rules if not set")
}

func (p *rulesPlan) changed() bool {
	live := p.Live != nil && (len(p.Live.Added)+len(p.Live.Removed)+len(p.Live.Counters)+len(p.Live.Keys) > 0)
	return len(p.Changes) > 0 || len(p.Counters) > 0 || live
}

func (o *planOptions) run(ctx context.Context, env Env, args []string) int {
	asks := o.remote.server != ""
	switch {
	case len(args) == 0 || len(args) == 1 && !asks:
		return misused(env, "plan", "name the old and the new rules, or the new ones and --server")
	case o.layer != "" && !asks:
		return misused(env, "plan", "--layer needs --server, which has the other layers")
	case len(args) > 2:
		return misused(env, "plan", "there are the old and the new rules, but there is also %q", args[2])
	case len(args) == 2 && args[0] == "-" && args[1] == "-":
		return misused(env, "plan", "standard input can be read once")
	case o.json && o.markdown:
		return misused(env, "plan", "--json and --markdown do not go together")
	}
	if asks {
		if err := o.remote.find(env); err != nil {
			return misused(env, "plan", "%v", err)
		}
	}
	if o.layer != "" && len(args) == 1 && args[0] != "-" {
		return o.runLayer(ctx, env, args[0])
	}
	var trees []*ruleTree
	for _, name := range args {
		t, err := readTree(name, disk{env.Stdin})
		if err != nil {
			problemsOf(err).Write(env.Stderr, false)
			return exitFound
		}
		trees = append(trees, t)
	}
	p := rulesPlan{New: args[len(args)-1], Changes: []rulediff.Change{}, Counters: []rules.Change{}}
	if len(trees) == 2 {
		p = comparePlan(trees[0], trees[1])
	}
	if asks {
		q := trees[len(trees)-1].proposal()
		q.Layer = o.layer
		if err := p.ask(ctx, env, &o.remote, q); err != nil {
			fmt.Fprintln(env.Stderr, "tidegate plan:", err)
			return exitFound
		}
	}
	return o.print(env, &p)
}

// runLayer has the server compare one layer, which need not load by itself.
func (o *planOptions) runLayer(ctx context.Context, env Env, name string) int {
	b, err := source.ReadBundle(name)
	if err != nil {
		problemsOf(err).Write(env.Stderr, false)
		return exitFound
	}
	p := rulesPlan{New: name, Changes: []rulediff.Change{}, Counters: []rules.Change{}}
	if err := p.ask(ctx, env, &o.remote, proposalOf(o.layer, b)); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate plan:", err)
		return exitFound
	}
	return o.print(env, &p)
}

func (o *planOptions) print(env Env, p *rulesPlan) int {
	switch {
	case o.json:
		if code := printJSON(env, p); code != exitOK {
			return code
		}
	case o.markdown:
		fmt.Fprint(env.Stdout, p.markdown())
	default:
		p.print(&env)
	}
	if o.detailed && p.changed() {
		return exitChanged
	}
	return exitOK
}

// comparePlan compares rules that were read here, without a server.
func comparePlan(old, now *ruleTree) rulesPlan {
	return rulesPlan{
		Old: old.name, New: now.name,
		Changes:  append([]rulediff.Change{}, rulediff.Compare(old.file, now.file)...),
		Counters: append([]rules.Change{}, rules.Compare(old.set, now.set)...),
	}
}

// planTimeout is longer than a server looks at its keys.
const planTimeout = 90 * time.Second

// ask asks a running server about the new rules, which are all of its rules or one layer.
func (p *rulesPlan) ask(ctx context.Context, env Env, r *remote, q admin.Proposal) error {
	r.timeout = planTimeout
	live := livePlan{Server: r.at.String()}
	shown := keysProgress{env: env, began: time.Now()}
	r.progress = shown.show
	err := r.post(ctx, "/rules/plan", q, &live.Plan)
	shown.end()
	if err != nil {
		return err
	}
	if !live.Valid {
		return &unusableError{live.Problems}
	}
	p.Live = &live
	return nil
}

// unusableError says that a server would refuse rules.
type unusableError struct{ problems diag.List }

func (e *unusableError) Error() string {
	return "the server cannot use the new rules:\n" + e.problems.Error()
}
