// Package serve is the composition root of tidegate serve: it wires the rules, the counters, the
// gateway, the doors and the admin listener as configured, handles signals, and hands over to a
// successor.
//
//	config → server.prepare: all that can be wrong → server.open: the counters → endpoints
//
// Start with [Run].
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/serve/handover"
	"tidegate.dev/tidegate/internal/telemetry/logsink"
)

// Options say what to serve, and the environment of the process.
type Options struct {
	Demo           bool // serve the example API, with its rules unless others are given
	Flags          *config.FlagValues
	Stdout, Stderr io.Writer
	Getenv         func(string) string // looks up GOGC
	Version        string              // of the program
}

// Run serves until ctx ends or a successor has taken over, and then returns nil. SIGHUP reloads,
// and SIGUSR2 hands over to a successor. Run prints the error that it returns: a diag.List if files
// of the operator are wrong.
func Run(ctx context.Context, o Options) error {
	collectLess(o.Getenv)
	upgrade := make(chan os.Signal, 1)
	if len(handover.UpgradeSignals) > 0 { // with none, Notify would relay all signals
		signal.Notify(upgrade, handover.UpgradeSignals...)
		defer signal.Stop(upgrade)
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	signal.Ignore(syscall.SIGPIPE) // the reader of a log may exit without ending the gateway
	err := o.serve(ctx, upgrade, reload)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	o.printFatal(err)
	return err
}

// printFatal prints why the process ends. It waits for a blocked reader for readerTimeout at most.
func (o *Options) printFatal(err error) {
	text := fmt.Sprintln("tidegate serve:", err)
	var mistakes diag.List
	if errors.As(err, &mistakes) {
		var b strings.Builder
		mistakes.Write(&b, false)
		text = b.String()
	}
	s := logsink.New(o.Stderr, logsink.Options{})
	_, _ = io.WriteString(s, text)
	s.Close(readerTimeout)
}

// garbage is the GOGC of the process, in percent of the live heap. Counters are outside of the Go
// heap, which is small, so with the default of 100 the collector would run all the time.
const garbage = 400

// collectLess sets GOGC to garbage, unless the environment sets it.
func collectLess(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// serve prepares a server, waits until a predecessor, if there is one, hands over, and then serves.
func (o *Options) serve(ctx context.Context, upgrade, reload <-chan os.Signal) error {
	heir, err := handover.Inherit()
	if err != nil {
		return err
	}
	defer heir.Close()
	c, problems := config.Load(config.Options{Flags: o.Flags, OwnRules: o.Demo})
	if c == nil {
		return problems
	}
	s := &server{config: c, stdout: o.Stdout, stderr: o.Stderr, heir: heir, example: example{asked: o.Demo}, version: o.Version}
	defer s.close()
	if err := s.prepare(ctx, problems); err != nil {
		return err
	}
	if err := s.followPlane(ctx); err != nil {
		return err
	}
	snapshot, err := heir.Await(ctx)
	if err != nil {
		return err
	}
	s.open(snapshot)
	s.announce()
	following, enough := context.WithCancel(context.Background())
	defer enough()
	go s.reloadWhen(following, reload)
	return handover.Serve(ctx, heir, handover.Options{
		Endpoints: s.endpoints(),
		Snapshot:  s.snapshot,
		File:      s.kept(),
		HandOver:  s.handOver,
		Leaving:   s.deferred.rest,
		Drain:     c.Drain,
		Upgrade:   upgrade,
		Stopping: func() {
			s.stopping.Store(true)
			if g := s.gateway.current.Load(); g != nil {
				g.SkipIdleGrace()
			}
		},
		Leave:   s.leaveRules,
		Resumed: s.resumed,
		Log:     s.log,
	})
}
