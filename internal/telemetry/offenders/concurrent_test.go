package offenders

import (
	"fmt"
	"sync"
	"testing"
)

// Goroutines that observe, look and reload at once lose nothing while every decision is looked at.
func TestConcurrent(t *testing.T) {
	of := New(Options{})
	defer of.Close()
	names := []string{limitsOf[0].Name, limitsOf[1].Name}
	of.SetRules(names)
	const each = 50 // all together less than is looked at in a tick
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range each {
				refuse(of, limitsOf[0], fmt.Sprint("user-", i%10))
				admit(of, limitsOf[1], fmt.Sprint("user-", g), 3)
			}
		})
	}
	all.Go(func() {
		for i := range 50 {
			of.Snapshot(Query{})
			of.SetRules(append(names, fmt.Sprint("other-", i)))
			of.tick()
		}
	})
	all.Wait()
	r := of.Snapshot(Query{})
	for _, e := range one(t, r, names[0], Refused, 10).Entries {
		if e.Count != 4*each/10 || e.AtLeast != e.Count || e.AtMost != e.Count {
			t.Errorf("%+v", e)
		}
	}
	for _, e := range one(t, r, names[1], Requests, 10).Entries {
		if e.Count != each {
			t.Errorf("%+v", e)
		}
	}
	if err := of.sound(); err != nil {
		t.Error(err)
	}
}

// Sampled decisions that find the lists busy are carried on: the estimate stays within its bounds.
func TestConcurrentFlood(t *testing.T) {
	of := New(Options{})
	defer of.Close()
	const goroutines, each = 4, 50_000
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := range each {
				key := "often"
				if i%4 == 0 {
					key = "seldom"
				}
				refuse(of, limitsOf[0], key)
			}
		})
	}
	all.Wait()
	l := one(t, of.Snapshot(Query{}), limitsOf[0].Name, Refused, 10)
	if err := within(l, map[string]int64{"often": goroutines * each * 3 / 4, "seldom": goroutines * each / 4}); err != nil {
		t.Error(err)
	}
}

// Decisions by a rule that has just been dropped do not undo what happens to other rules meanwhile.
func TestDroppedRuleUndoesNothing(t *testing.T) {
	of := New(Options{})
	defer of.Close()
	of.SetRules([]string{"gone"})
	gone := of.Rule("gone")
	of.SetRules(nil)
	done := make(chan struct{})
	var late sync.WaitGroup
	late.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if r, _ := of.begin(gone, common); r != nil {
					of.mu.Unlock()
				}
			}
		}
	})
	for i := range 20_000 {
		of.SetRules([]string{"other"})
		r := of.add("other")
		if now := (*of.table.all.Load())["other"]; now != r {
			t.Errorf("after %d changes, a rule is lost that has just been added", i)
			break
		}
		of.SetRules(nil)
		if now := (*of.table.all.Load())["other"]; now != nil {
			t.Errorf("after %d changes, a rule is back that has just been dropped", i)
			break
		}
	}
	close(done)
	late.Wait()
}
