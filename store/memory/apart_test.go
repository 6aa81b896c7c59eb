package memory

import (
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/storetest"
)

// Two stores in memory have nothing in common, and say so.
func TestReservationsElsewhere(t *testing.T) {
	storetest.RunShared(t, false, func(*testing.T) (a, b tidegate.Store) { return New(), New() })
}
