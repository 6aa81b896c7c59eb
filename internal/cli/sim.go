package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/sim"
	"tidegate.dev/tidegate/rules"
)

var simCommand = command{
	name:    "sim",
	summary: "Simulate a fleet under your rules, in virtual time: overload, outages, rollouts.",
	help: `
Usage: tidegate sim [FLAGS] RULES.yaml
       tidegate sim [FLAGS] --scenario NAME|FILE
       tidegate sim --random DECISIONS [--seed N]
       tidegate sim --random-regions SCENARIOS [--seed N]

Runs the code of as many instances as you like in front of a simulated Redis, and puts each
limit of the rules under load by itself. It prints what was offered, admitted and refused, and
fails if a promise was broken; docs/sim.md lists them. Seconds take milliseconds.

Scenarios that ship: latency_sweep, rollout, outage_many_keys, flash_sale, edge. A file has the
flags as fields; those of the command line take precedence:

  rules: rules.yaml
  nodes: 20
  load: 3x
  fault: [ silent 5s+5s, crash 20s+1s of 3 nodes ]

Faults: down, empty, failover, stall, silent, slow, crash; see docs/sim.md.

Examples:
  tidegate sim rules.yaml --nodes 20 --load 3x --outage 5s
  tidegate sim rules.yaml --was old.yaml --nodes 10 --html rollout.html
  tidegate sim rules.yaml --latency 20ms --fault 'failover 5s+1s lag 200ms'
  tidegate sim --scenario flash_sale
  tidegate sim --random 1000000 --seed 7`,
	takes: takes{endings: []string{".yaml"}, values: map[string][]string{
		"shape": {"even", "one", "burst", "ramp", "flash"}, "scenario": {"latency_sweep", "rollout", "outage_many_keys", "flash_sale", "edge"},
	}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := &simOptions{set: flags}
		flags.StringVar(&o.rules, "rules", "", "`FILE` or folder of rules")
		flags.StringVar(&o.was, "was", "", "`FILE` or folder of older rules that the nodes still have when the run begins")
		flags.StringVar(&o.scenario, "scenario", "", "`NAME` of a scenario that ships with the program, or its file")
		flags.IntVar(&o.nodes, "nodes", 3, "`NUMBER` of instances, up to 200")
		flags.DurationVar(&o.lasts, "for", 20*time.Second, "how long there is load")
		flags.StringVar(&o.load, "load", "3x", "how much is offered: `TIMES` what each limit admits in that time")
		flags.IntVar(&o.keys, "keys", 10, "`NUMBER` of keys of each limit")
		flags.StringVar(&o.shape, "shape", "even", "`SHAPE` of the load: even, one, burst, ramp or flash")
		flags.DurationVar(&o.hold, "hold", 100*time.Millisecond, "how long a request holds a slot")
		flags.DurationVar(&o.deadline, "deadline", 25*time.Millisecond, "store.deadline of the instances")
		flags.DurationVar(&o.network.Latency, "latency", time.Millisecond, "the round trip to Redis")
		flags.DurationVar(&o.network.Jitter, "jitter", time.Millisecond, "how much longer a round trip to Redis may take")
		flags.Float64Var(&o.network.Loss, "loss", 0, "the `SHARE` of messages that TCP has to send again")
		flags.DurationVar(&o.server.PerCall, "per-call", 0, "how long Redis works on a call")
		flags.DurationVar(&o.skew, "skew", 0, "how far the clock of an instance may be ahead or behind")
		flags.DurationVar(&o.server.Skew, "server-skew", 0, "how far the clock of Redis is ahead")
		flags.Float64Var(&o.server.Drift, "drift", 0, "how much faster the clock of Redis runs: 0.001 is a millisecond a second")
		flags.DurationVar(&o.outage, "outage", 0, "how long Redis is gone, after a third of the time")
		flags.Func("fault", "`FAULT` such as 'silent 2s+5s of 3 nodes'; may be repeated", o.addFault)
		flags.Uint64Var(&o.seed, "seed", 0, "everything random comes from this `NUMBER`; 0 means another one each time")
		flags.StringVar(&o.html, "html", "", "write a page with plots to `FILE`")
		flags.Int64Var(&o.random, "random", 0, "run random scenarios, one per seed, until this many `DECISIONS` were made")
		flags.IntVar(&o.regions, "random-regions", 0, "run this many random `SCENARIOS` of 200 instances in three regions, one per seed")
		return o.run
	},
}

type simOptions struct {
	set                                 *flag.FlagSet
	rules, was, scenario, html          string
	nodes, keys, regions                int
	lasts, hold, deadline, outage, skew time.Duration
	load, shape                         string
	network                             sim.Network
	server                              sim.Server
	faults                              []sim.Fault
	seed                                uint64
	random                              int64
}

func (o *simOptions) addFault(text string) error {
	f, err := sim.ParseFault(text)
	if err == nil {
		o.faults = append(o.faults, f)
	}
	return err
}

func (o *simOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) > 1 {
		return misused(env, "sim", "it takes one file of rules, but got %q", args)
	}
	if len(args) == 1 {
		o.rules = args[0]
	}
	runtime.GOMAXPROCS(1) // one bubble at a time, and in the same order as far as possible
	if o.random > 0 || o.regions > 0 {
		if o.seed == 0 {
			o.seed = 1
		}
		return o.runRandom(ctx, env)
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1e6
	}
	runs, code := o.scenarios(env)
	if code != exitOK {
		return code
	}
	return o.play(ctx, env, runs)
}

// scenarios returns the scenarios that were asked for; without them, the code is the exit code.
func (o *simOptions) scenarios(env Env) ([]sim.Scenario, int) {
	if o.scenario != "" {
		for _, ship := range sim.Shipped {
			if ship.Name == o.scenario {
				return ship.Runs(o.seed), exitOK
			}
		}
		if problems := o.readFile(o.scenario); len(problems) > 0 {
			problems.Write(env.Stderr, false)
			return nil, exitUsage
		}
	}
	if o.rules == "" {
		return nil, misused(env, "sim", "name a file of rules, or a --scenario")
	}
	s, err := o.shared()
	if err != nil {
		return nil, misused(env, "sim", "%v", err)
	}
	set, err := rules.Load(o.rules, rules.Config{MergeDomains: true})
	old := set
	if err == nil && o.was != "" {
		old, err = rules.Load(o.was, rules.Config{MergeDomains: true})
	}
	if err != nil {
		problemsOf(err).Write(env.Stderr, false)
		return nil, exitFound
	}
	times, err := strconv.ParseFloat(strings.TrimSuffix(o.load, "x"), 64)
	if err != nil || times <= 0 || times > 1000 {
		return nil, misused(env, "sim", "--load %q is not a number such as 3x", o.load)
	}
	s.Subjects = subjects(set, old, sim.Subject{Keys: o.keys, Load: times, Hold: o.hold})
	if len(s.Subjects) == 0 {
		return nil, misused(env, "sim", "%s has no limit that counts", o.rules)
	}
	if o.was != "" {
		s.Rollout = sim.Span{From: o.lasts / 4, To: o.lasts * 3 / 4}
	}
	return []sim.Scenario{s}, exitOK
}

// shared returns a scenario with everything but the limits.
func (o *simOptions) shared() (s sim.Scenario, err error) {
	shape, ok := sim.ParseShape(o.shape)
	switch {
	case !ok:
		return s, fmt.Errorf("--shape is %q: write even, one, burst, ramp or flash", o.shape)
	case o.nodes < 1 || o.nodes > sim.MaxNodes:
		return s, fmt.Errorf("--nodes is %d: write 1 to %d", o.nodes, sim.MaxNodes)
	case o.keys < 1 || o.keys > 100_000:
		return s, fmt.Errorf("--keys is %d: write 1 to 100000", o.keys)
	case o.lasts < time.Second || o.lasts > time.Hour:
		return s, fmt.Errorf("--for is %s: write 1s to 1h", o.lasts)
	case o.hold <= 0 || o.deadline <= 0 || o.network.Latency < 0 || o.network.Jitter < 0 || o.server.PerCall < 0 || o.outage < 0 || o.skew < 0:
		return s, fmt.Errorf("a duration is negative, or 0 where it must not be")
	case o.network.Loss < 0 || o.network.Loss > 0.5:
		return s, fmt.Errorf("--loss is %g: write 0 to 0.5", o.network.Loss)
	}
	s = sim.Scenario{
		Name: o.rules, Seed: o.seed, Nodes: o.nodes, Lasts: o.lasts, Shape: shape, Deadline: o.deadline,
		Skew: o.skew, Network: o.network, Server: o.server, Faults: o.faults,
	}
	for _, f := range s.Faults {
		if len(f.Nodes) > o.nodes {
			return s, fmt.Errorf("the fault %q hits more nodes than there are", f)
		}
	}
	if o.outage > 0 {
		s.Faults = append(s.Faults, sim.Fault{Kind: sim.Silent, At: o.lasts / 3, For: o.outage})
	}
	return s, nil
}

// subjects returns the limits that decide, each after its older version, if that differs.
func subjects(set, old *rules.Set, each sim.Subject) (all []sim.Subject) {
	before := make(map[string]*tidegate.Limit)
	for _, l := range old.Limits() {
		before[l.Identity()] = l
	}
	for _, l := range set.Limits() {
		if l.Algorithm == tidegate.Deny || l.Terms != nil && l.Terms.Role != tidegate.Decides {
			continue
		}
		sub := each
		sub.Name = l.Name
		if was := before[l.Identity()]; was != nil && was.Spec != l.Spec {
			sub.Versions = append(sub.Versions, was)
		}
		sub.Versions = append(sub.Versions, l)
		all = append(all, sub)
	}
	return all
}

// play runs scenarios, and prints what came of them.
func (o *simOptions) play(ctx context.Context, env Env, runs []sim.Scenario) int {
	var reports []*sim.Report
	broken := 0
	show := newSimProgress(env)
	defer show.end()
	for i, s := range runs {
		if ctx.Err() != nil {
			return exitFound
		}
		show.at(fmt.Sprintf("%s, run %d of %d", s.Name, i+1, len(runs)))
		r := sim.Run(s, sim.VirtualTime, show.add)
		reports = append(reports, r)
		broken += len(r.Violations)
	}
	show.end()
	printReports(env, reports)
	if o.html != "" {
		if err := writePage(o.html, reports); err != nil {
			fmt.Fprintln(env.Stderr, "tidegate sim:", err)
			return exitFound
		}
	}
	if broken > 0 {
		return exitFound
	}
	return exitOK
}

func writePage(name string, reports []*sim.Report) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = sim.WriteHTML(f, reports)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// printReports prints a table for each run of scenarios that share their columns.
func printReports(env Env, reports []*sim.Report) {
	for i, r := range reports {
		if i == 0 || len(reports) < 3 {
			fmt.Fprintf(env.Stdout, "%s: %s\n", env.paint(bold, r.Scenario.Name), r.Scenario.Describe())
		}
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Join(sim.Columns, "\t")+"\t")
	for _, r := range reports {
		for _, row := range r.Rows {
			fmt.Fprintln(w, strings.Join(row.Cells(), "\t")+"\t")
		}
	}
	_ = w.Flush()
	for _, r := range reports {
		for _, v := range r.Violations {
			fmt.Fprintf(env.Stdout, "%s %s (seed %d)\n", env.paint(red, "BROKEN"), v, r.Scenario.Seed)
		}
	}
}
