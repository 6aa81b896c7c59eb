package memory_test

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
		return memory.Open(memory.Config{Now: now})
	})
}

func TestConformanceRealClock(t *testing.T) {
	storetest.RunReal(t, func(t *testing.T) tidegate.Store { return memory.New() })
}
