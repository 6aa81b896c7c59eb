// Package storetest is the suite that every [tidegate.Store] passes. The author
// of a store writes one test:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
//			return mystore.Open(mystore.Config{Now: now})
//		})
//	}
//
// Start with [Run]. A store that does not do everything is held to the parts that [Only] names;
// docs/stores.md has an example. [Brief] is for a store that passes the suite elsewhere.
// [RunReal] is for a store whose clock cannot be set, such as
// one on another machine. [RunRollout] is for several stores that share counters and
// are asked under different versions of a limit; [RunShared] is for two that settle
// each other's reservations, or say that they cannot. The first two check what package
// tidegate says about Store, Renewer, Reserver and Resetter; a store that lacks one of
// the optional abilities passes, and the log says which ones were not tested.
//
// Tests that depend on time are scripts in testdata, one per behaviour, which can
// be read without knowing Go; trace.go explains their lines. The suite does not
// measure speed or memory, and it does not test a store at its memory bound.
package storetest
