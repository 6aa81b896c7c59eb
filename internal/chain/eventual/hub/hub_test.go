package hub

import (
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/tallytest"
)

func TestConformance(t *testing.T) {
	tallytest.Run(t, func(*testing.T) chain.Tallies { return New(time.Now) })
}

func TestRegions(t *testing.T) {
	tallytest.RunRegions(t, func(*testing.T) tallytest.Store { return New(time.Now) })
}
