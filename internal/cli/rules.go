package cli

import (
	"context"
	"flag"
	"slices"
	"strings"
)

// rulesVerbs are the words for what the command can do.
var rulesVerbs = []string{"status", "history", "pull", "push", "rollback", "diff", "publish"}

var rulesCommand = command{
	name:    "rules",
	summary: "Show which rules are in force where and since when, publish others, and go back.",
	help: `
Usage: tidegate rules status   [--watch] [--check] [FLAGS]
       tidegate rules history  [--from SOURCE] [FLAGS]
       tidegate rules pull     FOLDER [--from SOURCE] [--revision REVISION] [FLAGS]
       tidegate rules push     FOLDER --to SOURCE --reason TEXT [--expect REVISION] [FLAGS]
       tidegate rules rollback --to SOURCE --to-revision REVISION --reason TEXT [FLAGS]
       tidegate rules diff     OLD [NEW] [--from SOURCE] [FLAGS]
       tidegate rules publish  FOLDER --to SOURCE [--follow] [FLAGS]

status asks every instance of the fleet which rules it applies: the hash of their files,
since when, and for each source (a file, a folder, a config server) the revision that is
in force and when the source last answered. Below are the instances that are behind, with
why, and what is refused where, the same message once. An instance is behind if it does
not run the newest revision of a source, or cannot know. Exits with 0; with --check, with
1 if an instance is behind, has not answered, or runs other rules than the others.

history lists the last 20 rule sets, the newest first, with who published them and why:
those that a source keeps, or without --from, those that were in force, if the source said
so. With counters in Redis the fleet has one such history, otherwise each instance has its
own. pull writes the files of one of them to FOLDER, which must not exist or be empty;
without --revision, of the newest, or of the one in force.

push publishes the rules in FOLDER, or in a file, in a source: redis://HOST#NAME,
etcd://HOST/PREFIX or dogma://HOST/PROJECT/REPO/PATH. It refuses rules that do not load or
whose tests fail, unless it is told --unchecked, and if somebody else published meanwhile,
or since --expect. rollback publishes a former revision again. diff shows what differs
between two folders or revisions of a source, line by line, and which counters do not
simply continue; with only OLD, what changes from the newest revision of the source to it.

Rules that are one of several layers may be fine by themselves and clash with the others,
or need what the others define. With --server, push, publish and rollback have that server
try them in the place of this layer first, and publish nothing that it would refuse;
without, push and publish check the rules by themselves, and rollback checks nothing.

publish is push for robots: it does nothing if the source has these rules, and takes
author and reason from the last commit if FOLDER is a checkout of git. With --follow it
goes on until interrupted, and publishes what passes whenever FOLDER changes. Several may
run at once. One that finds rules in the source that were published later than its own,
as by a rollback, waits until FOLDER changes; without --follow, it exits with 1.
` + serverHelp + `
Examples:
  tidegate rules status
  tidegate rules status --check --json
  tidegate rules push rules/ --to redis://redis:6379 --reason "twice the traffic on Friday"
  tidegate rules push team/ --to redis://redis:6379#team --server https://limits-1:9090 --reason "less for bots"
  tidegate rules diff rules/ --from redis://redis:6379
  tidegate rules rollback --to redis://redis:6379 --to-revision 41 --reason "too strict"
  tidegate rules publish rules/ --to etcd://etcd:2379/tidegate/rules --follow
  tidegate rules pull before/ --revision 3f2a9c01b7d4`,
	takes: takes{words: rulesVerbs},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := rulesOptions{}
		o.remote.flags(flags)
		flags.BoolVar(&o.check, "check", false, "with status, exit with 1 unless all run the newest rules")
		flags.BoolVar(&o.watch, "watch", false, "with status, ask again every 2 seconds until interrupted")
		flags.StringVar(&o.revision, "revision", "", "with pull, the `REVISION`, or the hash of a set that was in force, or how it begins")
		flags.BoolVar(&o.json, "json", false, "print JSON; with --watch, an object per line")
		o.archived.flags(flags)
		return o.run
	},
}

type rulesOptions struct {
	remote             remote
	archived           archived
	revision           string
	check, watch, json bool
}

func (o *rulesOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) == 0 || !slices.Contains(rulesVerbs, args[0]) {
		return misused(env, "rules", "say what to do: tidegate rules %s", strings.Join(rulesVerbs, ", "))
	}
	verb, rest := args[0], args[1:]
	if name, of := o.misplaced(verb); name != "" {
		return misused(env, "rules", "--%s is for %s, not for %s", name, of, verb)
	}
	atSource := map[string]func(context.Context, Env, []string) error{
		"history": o.sourceHistory, "pull": o.sourcePull, "push": o.push, "rollback": o.rollback, "diff": o.diff, "publish": o.publish,
	}
	switch {
	case verb == "status":
		return o.runStatus(ctx, env, rest)
	case verb == "history" && o.archived.source == "":
		return o.runHistory(ctx, env, rest)
	case verb == "pull" && o.archived.source == "":
		return o.runPull(ctx, env, rest)
	}
	return o.answer(env, atSource[verb](ctx, env, rest))
}

// misplaced returns a flag that means nothing to a verb, and the verb that it is for.
func (o *rulesOptions) misplaced(verb string) (name, of string) {
	a := &o.archived
	for _, f := range []struct {
		name, of string
		set      bool
	}{
		{"check", "status", o.check},
		{"watch", "status", o.watch},
		{"revision", "pull", o.revision != ""},
		{"expect", "push", a.expect != ""},
		{"to-revision", "rollback", a.toRevision != ""},
		{"follow", "publish", a.follow},
	} {
		if f.set && f.of != verb {
			return f.name, f.of
		}
	}
	return "", ""
}
