package algo

import (
	"testing"
	"unsafe"
)

// The compiler keeps structs of up to four words and fields in registers.
func TestVerdictFitsRegisters(t *testing.T) {
	if size := unsafe.Sizeof(Verdict{}); size > 32 {
		t.Errorf("a Verdict has %d bytes, want at most 32", size)
	}
	if size := unsafe.Sizeof(view{}); size > 32 {
		t.Errorf("a view has %d bytes, want at most 32", size)
	}
}

func TestVerdictTellsOneDelay(t *testing.T) {
	f := func(v Verdict, wait, retry int64, never bool) {
		t.Helper()
		if v.Wait() != wait || v.Retry() != retry || v.Never() != never {
			t.Errorf("%+v: wait %d, retry %d, never %v", v, v.Wait(), v.Retry(), v.Never())
		}
	}
	f(Verdict{Granted: 1, Delay: 5}, 5, 0, false)
	f(Verdict{Delay: 5}, 0, 5, false)
	f(Verdict{Delay: Never}, 0, 0, true)
	f(Verdict{}, 0, 0, false)
}
