// The overload rig puts a gateway in front of an upstream that slows down with its load, asks for five
// times what that can do, and shows what is served of critical traffic and of the rest: without rules,
// with shed, and with classes, set_aside and shed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/served"
)

const shedRules = `version: 1
classes:
  - { name: critical, match: POST /charges }
  - { name: users, match: /users/ }
  - { name: guests }
shed: { while: upstream_p99 > 100ms, never: critical }
rules:
  - { name: callers, per: ip, limits: 100/second }
`

// slots are more than the workers, of which others than critical requests get a third.
const slotRules = shedRules + `  - name: workers
    per: everyone
    concurrency: { slots: 12, lease: 30s }
    set_aside: { critical: 66% }
`

// run is one experiment.
type run struct {
	name, rules string
	load        *load
	from, to    time.Duration // of the overload
}

// calm is before the overload, from when the gateway is warm.
func (r *run) calm() []sample { return r.load.between(0, 2*time.Second, r.from) }

func (r *run) critical() []sample { return r.load.between(0, r.from, r.to) }

// goodput returns what is served a second of all classes, in the second half of the overload.
func (r *run) goodput() float64 {
	half := (r.to - r.from) / 2
	return float64(servedOf(r.load.between(-1, r.to-half, r.to))) / half.Seconds()
}

// String returns a line about the run.
func (r *run) String() string {
	c := r.critical()
	return fmt.Sprintf("%s: %.1f%% of critical requests are served with a p99 of %s, unloaded %s; %.0f of %.0f requests a second are served in the end.",
		r.name, 100*float64(servedOf(c))/float64(max(1, len(c))), p99(c).Round(time.Millisecond), p99(r.calm()).Round(time.Millisecond), r.goodput(), capacity)
}

// missed returns the bars that the runs do not reach.
func missed(without, with *run) (all []string) {
	c := with.critical()
	if n := servedOf(c); n*100 < len(c)*99 {
		all = append(all, fmt.Sprintf("%s: %d of %d critical requests are served, not 99%%", with.name, n, len(c)))
	}
	if got, most := p99(c), 2*p99(with.calm()); got > most {
		all = append(all, fmt.Sprintf("%s: the p99 of critical requests is %s, more than twice the unloaded one", with.name, got))
	}
	if got := without.goodput(); got > capacity/2 {
		all = append(all, fmt.Sprintf("%s: the site does not collapse: %.0f requests a second", without.name, got))
	}
	return all
}

func main() { rig.Main("overload", 20*time.Minute, measure) }

func measure(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	check := flags.Bool("check", false, "exit 1 when a bar is missed, naming it")
	file := flags.String("plot", "", "write the plot to this `FILE`")
	lasts := flags.Duration("overload", time.Minute, "how long the overload lasts")
	seed := flags.Uint64("seed", 1, "of the random traffic")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, program, err := served.BuildTemp(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	phases := []phase{{0.5, 15 * time.Second}, {5, *lasts}, {0.5, 15 * time.Second}}
	runs := []*run{
		{name: "without rules"},
		{name: "shed alone", rules: shedRules},
		{name: "classes, set_aside and shed", rules: slotRules},
	}
	for _, r := range runs {
		r.from, r.to = phases[0].lasts, phases[0].lasts+phases[1].lasts
		if err := r.try(ctx, dir, program, phases, *seed); err != nil {
			return err
		}
		fmt.Fprintln(out, r)
	}
	if *file != "" {
		if err := os.WriteFile(*file, []byte(plot(runs, phases)), 0o644); err != nil {
			return err
		}
	}
	bars := missed(runs[0], runs[2])
	for _, m := range bars {
		fmt.Fprintln(out, "missed:", m)
	}
	if *check && len(bars) > 0 {
		return rig.ErrMissed
	}
	return nil
}

// try runs the experiment with an upstream and a gateway of its own.
func (r *run) try(ctx context.Context, dir, program string, phases []phase, seed uint64) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	address, err := startUpstream(ctx)
	if err != nil {
		return err
	}
	args := []string{"--upstreams=http://" + address, "--trust.proxies=127.0.0.0/8"}
	if r.rules != "" {
		file := filepath.Join(dir, "rules.yaml")
		if err := os.WriteFile(file, []byte(r.rules), 0o600); err != nil {
			return err
		}
		args = append(args, "--rules="+file)
	}
	g, err := served.Start(ctx, program, args...)
	if err != nil {
		return err
	}
	defer g.Stop()
	r.load = newLoad(g.URL)
	r.load.run(ctx, phases, seed)
	return context.Cause(ctx)
}
