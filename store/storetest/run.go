package storetest

import (
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Run holds a store to everything in this package, or to the parts that [Only] selects. open
// returns a new, empty store that takes its time from now, and closes it by t.Cleanup if it
// must. [Brief] is for stores that pass it elsewhere.
// Concurrency tests run for a second; with TIDEGATE_LONG=1 in the environment
// for ten.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) tidegate.Store, only ...Selection) {
	t.Helper()
	a, brief := selected(t, only, open(t, time.Now)), isBrief(only)
	run := func(name string, f func(*subject)) {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			f(&subject{T: t, store: limitTo(t, open(t, c.now), a, c), clock: c, asked: a, brief: brief})
		})
	}
	for _, b := range behaviours {
		run(b.name, b.run)
	}
	for _, b := range timed {
		run(b.name, b.run)
	}
	t.Run("trace", func(t *testing.T) { runTraces(t, a, open) })
	t.Run("rollout", func(t *testing.T) {
		runRollout(t, lessIf(brief, 200, 40), a, func(t *testing.T, now func() time.Time) []tidegate.Store {
			s := open(t, now)
			return []tidegate.Store{s, s}
		})
	})
	t.Run("model", func(t *testing.T) { runModel(t, a, brief, open) })
	runConcurrent(t, a, brief, func(t *testing.T) tidegate.Store { return open(t, time.Now) })
}

// RunReal holds a store to what can be seen without setting its clock, or to the parts of
// that which [Only] selects. open returns a store that is empty for the names and keys of
// this test.
func RunReal(t *testing.T, open func(t *testing.T) tidegate.Store, only ...Selection) {
	t.Helper()
	a, brief := selected(t, only, open(t)), isBrief(only)
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			b.run(&subject{T: t, store: limitTo(t, open(t), a, nil), asked: a, brief: brief})
		})
	}
	runConcurrent(t, a, brief, open)
}

// selected returns what is asked of the store, and logs what is not.
func selected(t *testing.T, only []Selection, store tidegate.Store) scope {
	t.Helper()
	a, rest, err := resolve(only)
	if err != nil {
		t.Fatal(err)
	}
	if a == nil {
		reportAbilities(t, store)
	} else if lacking := a.lacks(store); lacking != "" {
		t.Fatalf("storetest.Only: %s are selected, and the store has no method for them", lacking)
	}
	if len(rest) > 0 {
		t.Logf("not asked of the store: %s", strings.Join(rest, ", "))
	}
	return a
}

type behaviour struct {
	name string
	run  func(*subject)
}

// behaviours need no control over the clock: their limits refill so slowly that
// nothing comes back during a test.
var behaviours = []behaviour{
	{"single", testSingle},
	{"single/weighted", testWeighted},
	{"vector/all or none", testAllOrNone},
	{"vector/wide limit does not pay", testWideDoesNotPay},
	{"vector/duplicates are one check", testDuplicates},
	{"vector/empty", testEmptyVector},
	{"advisory/charged when it passes", testAdvisoryCharged},
	{"advisory/never decides", testAdvisoryNeverDecides},
	{"advisory/not charged on refusal", testAdvisoryRefusal},
	{"advisory/alone", testAdvisoryAlone},
	{"advisory/over", testAdvisoryOver},
	{"advisory/over in copies", testAdvisoryOverInCopies},
	{"advisory/over in reservations", testAdvisoryOverReserved},
	{"copies/as many as fit", testCopies},
	{"copies/whole vectors", testCopiesVector},
	{"copies/advisory", testCopiesAdvisory},
	{"peek", testPeek},
	{"oversized/never", testOversized},
	{"oversized/sum of duplicates", testOversizedSum},
	{"floor/so much remains", testFloor},
	{"floor/of each in a vector", testFloorVector},
	{"floor/copies and advice", testFloorCopies},
	{"floor/never", testFloorNever},
	{"floor/rejected ones", testFloorRejected},
	{"adjust/return", testReturn},
	{"adjust/never above capacity", testReturnTooMuch},
	{"adjust/force", testForce},
	{"decision/refusal", testChoiceOfRefusal},
	{"decision/admission", testChoiceOfAdmission},
	{"decision/receipt", testReceipt},
	{"identity/numbers share", testIdentityShared},
	{"identity/names and keys differ", testIdentityApart},
	{"identity/odd keys", testOddKeys},
	{"identity/raw time", testRawIdentity},
	{"change/used events stay", testChangeKeepsUsed},
	{"change/narrower tier", testChangeNarrower},
	{"change/raised at once", testChangeRaised},
	{"slots/acquire and release", testSlots},
	{"slots/names are unique", testSlotNames},
	{"slots/copies", testSlotCopies},
	{"slots/as many copies as fit", testSlotCopiesFit},
	{"slots/names stay in order", testSlotNamesOrdered},
	{"slots/with other limits", testSlotsMixed},
	{"reserve/settle", testSettle},
	{"reserve/once", testSettleOnce},
	{"reserve/parallel calls", testParallelCalls},
	{"reserve/only estimates", testSettleOnlyEstimates},
	{"reserve/advisory", testSettleAdvisory},
	{"reset", testReset},
	{"gate/only what is settled blocks", testSettledBlocks},
	{"gate/what nobody reports is settled", testUnreportedBlocks},
	{"gate/a ticket is settled once", testTicketOnce},
	{"misuse/rejected without effect", testMisuse},
	{"misuse/access rules", testAccessRules},
	{"misuse/slice reused", testSliceReused},
	{"misuse/context cancelled", testCancelled},
}

// timed behaviours set the clock.
var timed = []behaviour{
	{"retry/exact", testRetryExact},
	{"retry/of a vector", testRetryVector},
	{"retry/above a floor", testFloorRetry},
	{"wait/above a floor", testFloorWait},
	{"floor/hammered", testFloorHammered},
	{"floor/three classes", testFloorClasses},
	{"reset after", testResetAfter},
	{"single/refilled at once", testRefilledAtOnce},
	{"wait/token bucket", testWaitToken},
	{"wait/leaky bucket", testWaitLeaky},
	{"wait/no turn is used twice", testTurnsOnce},
	{"wait/a turn in the middle stays a hole", testTurnHole},
	{"wait/longest of several", testWaitVector},
	{"wait/without end", testWaitForever},
	{"adjust/return lands where it counts", testReturnLands},
	{"adjust/return what was charged last", testReturnLatest},
	{"adjust/debt is one capacity", testDebt},
	{"adjust/debt is seen under a larger limit", testDebtIsSeen},
	{"change/retry is exact", testChangeRetry},
	{"change/reset is exact", testChangeReset},
	{"change/resolution", testChangeResolution},
	{"change/raw time", testRawChange},
	{"change/raw time is given back", testRawReturn},
	{"time/step back", testStepBack},
	{"time/stale at a window roll", testStale},
	{"time/step back with a history", testStepBackOld},
	{"time/a moment behind", testBehind},
	{"time/step forward", testStepForward},
	{"slots/crashed holder", testSlotExpiry},
	{"slots/renewed stream", testSlotStream},
	{"slots/lost lease", testSlotLost},
	{"reserve/too late", testSettleLate},
	{"gate/gives way for a while", testGivesWay},
}

func reportAbilities(t *testing.T, store tidegate.Store) {
	t.Helper()
	if _, ok := store.(tidegate.Renewer); !ok {
		t.Log("the store is not a tidegate.Renewer: renewing leases is not asked of it")
	}
	if _, ok := store.(tidegate.Reserver); !ok {
		t.Log("the store is not a tidegate.Reserver: reservations are not asked of it")
	}
	if _, ok := store.(tidegate.Resetter); !ok {
		t.Log("the store is not a tidegate.Resetter: resetting is not asked of it")
	}
}
