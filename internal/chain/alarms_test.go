package chain

import (
	"testing"
	"testing/synctest"
	"time"
)

// An alarm is never late, and hardly early; those that wait for the same time share it, and none is
// kept.
func TestAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Alarms
		for _, in := range []time.Duration{-time.Second, 0, time.Microsecond, 499 * time.Microsecond, 15 * time.Millisecond, 15*time.Millisecond + 777*time.Microsecond, time.Minute} {
			began := time.Now()
			one, other := a.At(began.Add(in)), a.At(began.Add(in))
			if one != other {
				t.Errorf("%s: two alarms for one time", in)
			}
			<-one
			if took := time.Since(began); took > max(0, in) || took < in-alarmStep {
				t.Errorf("the alarm in %s came after %s", in, took)
			}
			time.Sleep(123 * time.Microsecond)
		}
		synctest.Wait()
		if len(a.set) != 0 {
			t.Errorf("%d alarms are kept", len(a.set))
		}
	})
}
