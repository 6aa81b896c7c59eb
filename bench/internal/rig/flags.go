package rig

import (
	"flag"
	"fmt"
	"time"
)

// Flags are those of a rig whose contestants take turns in rounds. A rig adds its own
// before it calls Parse.
type Flags struct {
	*flag.FlagSet
	Check    bool
	Markdown string // file, or ""
	Rounds   int
	Heat     time.Duration

	leastHeat time.Duration
}

// NewFlags returns the flags of a rig with their defaults. A heat below least is refused.
func NewFlags(name string, rounds int, heat, least time.Duration) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(name, flag.ExitOnError), leastHeat: least}
	f.BoolVar(&f.Check, "check", false, "exit 1 when a bar is missed, naming it")
	f.StringVar(&f.Markdown, "markdown", "", "also write the tables to this `FILE`, with machine and date")
	f.IntVar(&f.Rounds, "rounds", rounds, "how many rounds count")
	f.DurationVar(&f.Heat, "heat", heat, "how long a contestant is asked in a round")
	return f
}

// Binary adds the flag by which a program that was built before is measured.
func (f *Flags) Binary() *string {
	return f.String("tidegate", "", "measure this `BINARY` instead of one built from the source")
}

// Only adds the flag by which one of the races is run.
func (f *Flags) Only(races string) *string {
	return f.String("only", "", "run this `RACE` alone: "+races+"; there is no last line then")
}

// Parse reads the flags.
func (f *Flags) Parse(args []string) error {
	if err := f.FlagSet.Parse(args); err != nil {
		return err
	}
	if f.Rounds < 1 || f.Heat < f.leastHeat {
		return fmt.Errorf("at least one round, and heats of at least %s", f.leastHeat)
	}
	return nil
}
