package rules

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pushed
		if _, ok := p.Signal("cpu"); ok {
			t.Error("known before anybody pushed it")
		}
		if err := p.Push("cpu", 0.5); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
			if err := p.Push("cpu", bad); err == nil {
				t.Errorf("%v is taken", bad)
			}
		}
		if err := p.Push("cpus", 1); err == nil || !strings.Contains(err.Error(), "cpu, memory") {
			t.Errorf("an unknown signal: %v", err)
		}
		if v, ok := p.Signal("cpu"); v != 0.5 || !ok {
			t.Errorf("cpu is %v, %t", v, ok)
		}
		time.Sleep(PushedLasts - 1)
		if _, ok := p.Signal("cpu"); !ok {
			t.Error("it has run out too early")
		}
		time.Sleep(time.Nanosecond)
		if _, ok := p.Signal("cpu"); ok {
			t.Error("it has not run out")
		}
	})
}
