package sim

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseFault(t *testing.T) {
	f := func(text string, want Fault) {
		t.Helper()
		got, err := ParseFault(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseFault(got.String()); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%q: %+v, %v", got.String(), again, err)
		}
	}
	f("silent 2s+5s", Fault{Kind: Silent, At: 2 * time.Second, For: 5 * time.Second})
	f("crash 0s+10ms of 2 nodes", Fault{Kind: Crash, For: 10 * time.Millisecond, Nodes: []int{0, 1}})
	f("slow 1s+1s extra 30ms of 1", Fault{Kind: Slow, At: time.Second, For: time.Second, Extra: 30 * time.Millisecond, Nodes: []int{0}})
	f("failover 1s+1s lag 200ms", Fault{Kind: Failover, At: time.Second, For: time.Second, Lag: 200 * time.Millisecond})
	bad := func(text, want string) {
		t.Helper()
		if got, err := ParseFault(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, want)
		}
	}
	bad("", "no time")
	bad("silent", "no time")
	bad("quiet 1s+1s", "there are down, empty")
	bad("silent 1s", "no time")
	bad("silent -1s+1s", "no time")
	bad("silent 1s+0s", "no duration")
	bad("silent 1s+1s of none", "no number of nodes")
	bad("silent 1s+1s of", `what is "of"`)
	bad("silent 1s+1s soon 1s", `what is "soon"`)
	bad("failover 2s+1s lag -1s", "no duration")
}

func FuzzParseFault(f *testing.F) {
	f.Add("slow 1s+1s extra 30ms of 1 nodes")
	f.Add("failover 2s+1s lag 200ms")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseFault(text)
		if err != nil {
			return
		}
		if again, err := ParseFault(got.String()); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%q is read as %+v, and %q as %+v, %v", text, got, got.String(), again, err)
		}
	})
}
