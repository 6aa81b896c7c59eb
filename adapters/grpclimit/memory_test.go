package grpclimit_test

import (
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/store/memory"
)

func TestMemory(t *testing.T) {
	calltest.Run(t, func(testing.TB) tidegate.Store { return memory.New() })
}
