package storetest

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// The suite and the reference were written from the same sentences by different
// means: each is the other's test.
func TestReference(t *testing.T) {
	testdep.SkipUnderRace(t)
	Run(t, func(_ *testing.T, now func() time.Time) tidegate.Store { return newReference(now) })
}

func TestReferenceReal(t *testing.T) {
	RunReal(t, func(*testing.T) tidegate.Store { return newReference(time.Now) })
}

// plain hides the optional abilities.
type plain struct{ tidegate.Store }

// A store may be no more than a Store.
func TestPlainStore(t *testing.T) {
	testdep.SkipUnderRace(t)
	Run(t, func(_ *testing.T, now func() time.Time) tidegate.Store { return plain{newReference(now)} })
}
