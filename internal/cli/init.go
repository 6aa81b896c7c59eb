package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
)

var initCommand = command{
	name:    "init",
	summary: "Write a first rule file, its test and a configuration.",
	help: `
Usage: tidegate init [FLAGS] [FOLDER]

Writes rules.yaml, rules_test.yaml and tidegate.yaml into the folder. On a terminal it asks
for what the flags do not say; elsewhere, and with --yes, it takes the defaults. Files
that are there already are not overwritten: then nothing is written.

Examples:
  tidegate init
  tidegate init --yes --upstream http://127.0.0.1:3000 --limit 60/minute
  tidegate init --per user --jwks keys.json --login 'POST /session' --redis redis://127.0.0.1:6379 gateway/`,
	takes: takes{endings: []string{"/"}, values: map[string][]string{"per": countable}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := initOptions{answers: firstAnswers(), given: make(map[string]bool)}
		for _, q := range questions {
			flags.Func(q.name, q.help+" (default "+orNone(*q.of(&o.answers))+")", func(text string) error {
				o.given[q.name] = true
				*q.of(&o.answers) = strings.TrimSpace(text)
				return nil
			})
		}
		flags.BoolVar(&o.yes, "yes", false, "ask nothing")
		return o.run
	},
}

// countable are the words of --per.
var countable = []string{"ip", "user", "api-key"}

type initOptions struct {
	answers answers
	given   map[string]bool // by flags
	yes     bool
}

// question is one thing to know. The flag of the same name answers it, too.
type question struct {
	name, ask, help string
	of              func(*answers) *string
	when            func(*answers) bool // nil means always
}

var questions = []question{
	{"upstream", "Where is the server to protect?", "`URL` of the server to protect", func(a *answers) *string { return &a.Upstream }, nil},
	{"match", "Which requests are limited? / is all, /api/ what is below it", "`PATTERN` of the requests that are limited", func(a *answers) *string { return &a.Match }, nil},
	{"per", "Who is counted: ip (addresses), user (of a verified token) or api-key (in X-Api-Key)?", "`WHO` is counted: ip, user or api-key", func(a *answers) *string { return &a.Per }, nil},
	{"jwks", "Which file has the keys that verify tokens? (none: later)", "`FILE` with the JSON Web Key Set that verifies the tokens of users, seen from the folder; none for later", func(a *answers) *string { return &a.JWKS }, func(a *answers) bool { return a.Per == "user" }},
	{"limit", "How much may each do?", "`LIMIT` of each, such as 100/minute, or several: 5/second,1000/hour", func(a *answers) *string { return &a.Limit }, nil},
	{"login", "Which request is a login, of which five failures block an address? (none: there is none)", "`PATTERN` of the login, which is blocked after five failures; none", func(a *answers) *string { return &a.Login }, nil},
	{"proxies", "In which networks are your own proxies, whose X-Forwarded-For is believed? (none: clients connect directly)", "`NETWORKS` of your own proxies, whose X-Forwarded-For is believed; none", func(a *answers) *string { return &a.Proxies }, nil},
	{"redis", "At which Redis do several instances share their counters? (none: counters in memory)", "`URL` of the Redis that instances share; none keeps counters in memory", func(a *answers) *string { return &a.Redis }, nil},
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func (o *initOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) > 1 {
		return misused(env, "init", "it takes one folder, but there is also %q", args[1])
	}
	folder := "."
	if len(args) == 1 {
		folder = args[0]
	}
	if there := existing(folder); len(there) > 0 {
		fmt.Fprintf(env.Stderr, "tidegate init: already there: %s; nothing is overwritten: name another folder, or remove them\n", strings.Join(there, ", "))
		return exitFound
	}
	// A flag that cannot be used is told before anything is asked.
	if problems := o.answers.check(ctx, folder); len(problems) > 0 {
		return misused(env, "init", "%s", strings.Join(problems, "\n  "))
	}
	if env.Asks && !o.yes {
		if err := o.askAll(ctx, env, folder); err != nil {
			fmt.Fprintf(env.Stderr, "\ntidegate init: %v; nothing is written\n", err)
			return exitFound
		}
	}
	if err := o.answers.write(folder); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate init:", err)
		return exitFound
	}
	in := func(name string) string { return shellWord(filepath.Join(folder, name)) }
	fmt.Fprintf(env.Stdout, "Written: %s, %s and %s. Now try\n\n  tidegate test %[2]s\n  tidegate serve -c %[3]s\n", in(rulesFile), in(testFile), in(configFile))
	return exitOK
}

func shellWord(name string) string {
	if strings.ContainsAny(name, " '\"\\$`&;()<>|*?[]#~!\t\n") {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}

// askAll asks for everything that no flag has said.
func (o *initOptions) askAll(ctx context.Context, env Env, folder string) error {
	lines := typedLines(env.Stdin)
	for _, q := range questions {
		if o.given[q.name] || q.when != nil && !q.when(&o.answers) {
			continue
		}
		for {
			answer := q.of(&o.answers)
			fmt.Fprintf(env.Stdout, "%s [%s] ", env.paint(bold, q.ask), orNone(*answer))
			before := *answer
			select {
			case <-ctx.Done():
				return errors.New("interrupted")
			case line, ok := <-lines:
				if !ok {
					return errors.New("the input ended")
				}
				if line = strings.TrimSpace(line); line != "" {
					*answer = line
				}
			}
			problems := o.answers.check(ctx, folder)
			if len(problems) == 0 {
				break
			}
			fmt.Fprintln(env.Stdout, "  "+strings.Join(problems, "\n  "))
			*answer = before
		}
	}
	return nil
}
