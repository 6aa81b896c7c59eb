package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/apikey"
	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/lint"
)

var lintCommand = command{
	name:    "lint",
	summary: "Find mistakes in rule files.",
	help: `
Usage: tidegate lint [FLAGS] FILE|FOLDER...
       tidegate lint [FLAGS] --layers FILE|FOLDER...
       tidegate lint [FLAGS] --was OLD FILE|FOLDER
       tidegate lint [FLAGS] - < FILE

Reports everything that prevents the rules from loading, and rules that load but do
not do what was meant: limits that can be escaped, that never take effect, that
shadow each other. Each check has a page in docs/lint. What you know and accept is
silenced by the rule or file itself, with a reason, and listed as waived:

  waive: { invented-key: "the partner's proxy strips it" }

With --was it also reports which counters do not simply continue when these rules
replace the old ones.

Examples:
  tidegate lint rules.yaml
  tidegate lint --strict --json rules/     # in CI: fail on warnings, too
  tidegate lint --format sarif rules/ > lint.sarif  # for code scanning
  git show HEAD:rules.yaml | tidegate lint --was - rules.yaml
  tidegate lint --was old.yaml rules.yaml  # which counters start where
  tidegate lint --layers base.yaml eu.yaml # joined, as "rules: [base.yaml, eu.yaml]" has them
  tidegate lint --door forward-auth rules.yaml  # what that door cannot know
  tidegate lint --config tidegate.yaml rules.yaml  # what that configuration does not trust
  tidegate lint --checks                   # list all checks`,
	takes: takes{
		endings: []string{".yaml", ".yml"},
		values:  map[string][]string{"format": lintFormats, "door": {"forward-auth", "check", "resp", "rls", quotaDoor}},
	},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := lintOptions{format: "text"}
		flags.Func("format", "`FORMAT` of what is found: text, json or sarif (2.1.0)", o.setFormat)
		flags.BoolFunc("json", "short for --format json", func(yes string) error {
			if on, err := strconv.ParseBool(yes); err != nil || !on {
				return err
			}
			return o.setFormat("json")
		})
		flags.BoolVar(&o.strict, "strict", false, "exit 1 for warnings, too; what is waived is neither")
		flags.StringVar(&o.was, "was", "", "`FILE` or folder of the rules that these replace; - is standard input")
		flags.Func("door", "also say what this `DOOR` cannot know or do: forward-auth, check, resp, rls or rlqs; may be repeated", o.addDoor)
		flags.StringVar(&o.config, "config", "", "also say what this configuration `FILE` of serve does not trust: tokens, API keys")
		flags.BoolVar(&o.layers, "layers", false, "the files and folders are layers of one rule set; later ones take precedence")
		flags.BoolVar(&o.list, "checks", false, "list the checks and exit")
		return o.run
	},
}

// quotaDoor is Envoy's quota service, as --door names it.
const quotaDoor = "rlqs"

// lintFormats are the words of --format.
var lintFormats = []string{"text", "json", "sarif"}

type lintOptions struct {
	format       string
	strict, list bool
	layers       bool
	was          string
	doors        []rules.Door
	quotas       bool // rlqs is one of them
	config       string
	trust        *lint.Trust // of config; nil means none is named
	mergeDomains bool        // as config says

	stdin []byte // what "-" stands for
}

func (o *lintOptions) setFormat(name string) error {
	if !slices.Contains(lintFormats, name) {
		return errors.New("there are text, json and sarif")
	}
	o.format = name
	return nil
}

func (o *lintOptions) addDoor(name string) error {
	if name == quotaDoor {
		o.quotas = true
		return nil
	}
	if !slices.Contains(rules.Doors(), rules.Door(name)) {
		return errors.New("there are forward-auth, check, resp, rls and rlqs")
	}
	o.doors = append(o.doors, rules.Door(name))
	return nil
}

func (o *lintOptions) run(_ context.Context, env Env, args []string) int {
	if o.list {
		for _, c := range lint.Checks {
			fmt.Fprintf(env.Stdout, "%-26s %s\n", c.Name, c.Summary)
		}
		return exitOK
	}
	switch {
	case len(args) == 0:
		return misused(env, "lint", "name a rule file or a folder of them, or - for standard input")
	case o.layers && slices.Contains(args, "-"):
		return misused(env, "lint", "--layers reads files and folders, not standard input")
	case o.was != "" && len(args) > 1 && !o.layers:
		return misused(env, "lint", "--was is about one rule file or folder, and there are %d", len(args))
	case o.was != "" && o.format == "sarif":
		return misused(env, "lint", "--was is not part of SARIF; use text or json")
	}
	if err := o.readStdin(env.Stdin, append(slices.Clone(args), o.was)); err != nil {
		return misused(env, "lint", "%v", err)
	}
	if err := o.findTrust(); err != nil {
		problemsOf(err).Write(env.Stderr, false)
		return exitFound
	}
	found := diag.List{} // printed as [] in JSON
	if o.layers {
		found.Add(lint.Layers(onDisk(args), o.options())...)
	} else {
		for _, name := range args {
			found.Add(o.look(name)...)
		}
	}
	found = found.Bounded()
	var changes []rules.Change
	if o.was != "" {
		var err error
		if changes, err = o.compare(args, found); err != nil {
			problemsOf(err).Write(env.Stderr, false)
			return exitFound
		}
	}
	if code := o.print(env, found, changes, len(args)); code != exitOK {
		return code
	}
	if errors, warnings := found.Count(); errors > 0 || o.strict && warnings > 0 {
		return exitFound
	}
	return exitOK
}

// findTrust finds what the configuration believes, and how it reads domains.
func (o *lintOptions) findTrust() error {
	if o.config == "" {
		return nil
	}
	c, problems := config.Load(config.Options{File: o.config, OwnRules: true})
	if c == nil {
		return problems
	}
	o.mergeDomains = c.RLS.MergeDomains
	o.trust = &lint.Trust{JWT: c.Trust.JWT.Key != "" || c.Trust.JWT.JWKS != ""}
	if file := c.Trust.APIKeys.File; file != "" {
		t, err := apikey.ReadFile(file)
		if err != nil {
			return err
		}
		o.trust.APIKeys, o.trust.Attributes = true, t.Columns()
	}
	return nil
}

// stdinName is what problems call standard input.
const stdinName = "<stdin>"

// readStdin reads standard input if one of names is "-".
func (o *lintOptions) readStdin(stdin io.Reader, names []string) (err error) {
	names = slices.DeleteFunc(names, func(name string) bool { return name != "-" })
	switch len(names) {
	case 0:
		return nil
	case 1:
		if o.stdin, err = bounded.All(stdin, rulefile.MaxBytes); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		return nil
	}
	return errors.New("standard input can be read once")
}

func (o *lintOptions) options() lint.Options {
	return lint.Options{Doors: o.doors, Quotas: o.quotas, Trust: o.trust, MergeDomains: o.mergeDomains}
}

func (o *lintOptions) look(name string) rules.Problems {
	if name == "-" {
		return lint.Text(stdinName, o.stdin, o.options())
	}
	return lint.File(name, o.options())
}

// load loads one file or folder, or several layers.
func (o *lintOptions) load(names ...string) (*rules.Set, error) {
	if names[0] == "-" {
		return rules.Parse(stdinName, o.stdin, rules.Config{MergeDomains: true})
	}
	return rules.LoadLayers(onDisk(names), rules.Config{MergeDomains: true})
}

// compare tells what becomes of counters when the rules of a file replace those of --was. It returns nil
// if the rules do not load, which is among what was found in them.
func (o *lintOptions) compare(now []string, found diag.List) ([]rules.Change, error) {
	was, err := o.load(o.was)
	if err != nil {
		return nil, err
	}
	set, err := o.load(now...)
	switch {
	case err != nil && found.HasErrors():
		return nil, nil
	case err != nil:
		return nil, err
	}
	return append([]rules.Change{}, rules.Compare(was, set)...), nil
}

func (o *lintOptions) print(env Env, found diag.List, changes []rules.Change, files int) int {
	switch {
	case o.format == "sarif":
		return printJSON(env, sarif(found))
	case o.format == "json" && o.was != "":
		return printJSON(env, struct {
			Problems diag.List      `json:"problems"`
			Changes  []rules.Change `json:"changes"`
		}{found, changes})
	case o.format == "json":
		return printJSON(env, found)
	}
	found.Write(env.Stdout, env.Color)
	sum(env, found, files)
	for _, c := range changes {
		fmt.Fprintln(env.Stdout, c)
	}
	if changes != nil && len(changes) == 0 {
		fmt.Fprintln(env.Stdout, "all counters continue")
	}
	return exitOK
}

func sum(env Env, found diag.List, files int) {
	errors, warnings := found.Count()
	text := fmt.Sprintf("%s: %s, %s", plural(files, "file"), plural(errors, "error"), plural(warnings, "warning"))
	if n := found.CountWaived(); n > 0 {
		text += fmt.Sprintf(", %d waived", n)
	}
	if len(found) > 0 {
		fmt.Fprintln(env.Stdout)
	}
	fmt.Fprintln(env.Stdout, text)
}
