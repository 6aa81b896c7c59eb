package redis

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

// twoOf opens two Stores on the same counters.
func twoOf(c Config) func(t *testing.T) (a, b tidegate.Store) {
	return func(t *testing.T) (a, b tidegate.Store) {
		first := openTest(t, c)
		c.Prefix, c.Deadline = first.prefix, time.Minute
		second, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = second.Close() })
		return first, second
	}
}

func TestSettleByAnotherStore(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	c := Config{Addrs: []string{server.Socket}}
	storetest.RunShared(t, true, twoOf(c))
	t.Run("apart", func(t *testing.T) {
		storetest.RunShared(t, false, func(t *testing.T) (a, b tidegate.Store) { return memory.New(), openTest(t, c) })
	})
}

func TestSettleByAnotherStoreInACluster(t *testing.T) {
	t.Parallel()
	storetest.RunShared(t, true, twoOf(clusterOf(testdep.RedisCluster(t, 3, 0))))
}

// What was reserved over several slots is settled by another Store with the text alone: the
// record is found, and so are all subjects, though none of them is in the text.
func TestSettleSlotsByAnotherStore(t *testing.T) {
	t.Parallel()
	one, other := twoOf(clusterOf(testdep.RedisCluster(t, 3, 0)))(t)
	for i := range 50 {
		checks, r := reserveThree(t, one.(*Store), fmt.Sprint("text", i), tidegate.FixedWindow, 50)
		text, err := r.MarshalText()
		var handedOn tidegate.Receipt
		if err == nil {
			err = handedOn.UnmarshalText(text)
		}
		if err == nil {
			err = other.(*Store).Settle(t.Context(), handedOn, 20)
		}
		if err != nil {
			t.Fatalf("case %d, %s: %v", i, text, err)
		}
		wantUsed(t, other.(*Store), checks, 20)
	}
}

const settleVariable = "REDIS_SETTLE"

// TestSettler is a process that knows the address of Redis and the text of a receipt.
func TestSettler(t *testing.T) {
	var url, text string
	if n, _ := fmt.Sscan(os.Getenv(settleVariable), &url, &text); n != 2 {
		return // not in that process: see TestSettleByAnotherProcess
	}
	var r tidegate.Receipt
	if err := r.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{URL: url, Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := tidegate.New(s).Settle(t.Context(), r, 10); err != nil {
		t.Fatal(err)
	}
}

func TestSettleByAnotherProcess(t *testing.T) {
	t.Parallel()
	url := "redis://" + testdep.Redis(t).Addr
	s, err := Open(Config{URL: url, Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lim := tidegate.New(s, tidegate.PerDay(100))
	r := lim.Reserve(t.Context(), "ann", 60)
	text, err := r.Receipt.MarshalText()
	if err != nil || !r.OK {
		t.Fatalf("%+v, %v", r.Decision, err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestSettler$")
	child.Env = append(os.Environ(), settleVariable+"="+url+" "+string(text))
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if d := lim.Peek(t.Context(), "ann"); d.Remaining != 90 {
		t.Errorf("%d left, want 90", d.Remaining)
	}
	if err := r.Settle(0); err != tidegate.ErrSettled {
		t.Errorf("settled twice: %v", err)
	}
}

// Every slot has a tag, and the tags are where the servers look for them.
func TestSlotTags(t *testing.T) {
	t.Parallel()
	for slot, tag := range slotTags() {
		if tag == "" || int(slotOf(tag)) != slot {
			t.Fatalf("tag %q for slot %d is in slot %d", tag, slot, slotOf(tag))
		}
	}
	if got := slotOf("123456789"); got != 0x31C3 { // the specification's own example
		t.Errorf("slot %#x", got)
	}
}
