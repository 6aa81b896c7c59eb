package rules

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// What waits in the queue of a leaky bucket leaves first: nobody overtakes it by a reload.
func TestPredecessorOfALine(t *testing.T) {
	d := newDesk(t, rulesOf("limits: { rate: 10/minute, algorithm: leaky_bucket }, queue: { places: 9, max_wait: 2m }"))
	var last tidegate.Decision
	for range 10 {
		last = d.ask(as("GET /", "user", "ann"))
	}
	if !last.OK || last.Wait != 54*time.Second {
		t.Fatalf("the tenth in the queue: %+v", last)
	}
	d.reload(rulesOf(limitVariants["bucket"]))
	if now := d.ask(as("GET /", "user", "ann")); now.OK || now.RetryAfter != time.Minute {
		t.Errorf("ten in the queue, and %+v", now)
	}
	d.wait(time.Minute)
	if now := d.ask(as("GET /", "user", "ann")); !now.OK {
		t.Errorf("the queue is empty, and %+v", now)
	}
	// The other way round it waits behind what was used.
	d = newDesk(t, rulesOf(limitVariants["bucket"]))
	for range 10 {
		d.ask(as("GET /", "user", "ann"))
	}
	d.reload(rulesOf("limits: { rate: 10/minute, algorithm: leaky_bucket }, queue: { places: 9, max_wait: 2m }"))
	if now := d.ask(as("GET /", "user", "ann")); !now.OK || now.Wait != 6*time.Second {
		t.Errorf("ten used, and %+v, want a wait of 6s", now)
	}
}

// Somebody who is blocked stays so when the block's time changes.
func TestBlockOutlastsAChange(t *testing.T) {
	d := newDesk(t, rulesOf("limits: 1/minute, block: 15m"))
	for range 3 {
		d.ask(as("GET /", "user", "ann"))
	}
	d.wait(5 * time.Minute)
	for _, block := range []string{"1h", "2m", "30m"} {
		d.reload(rulesOf("limits: 1/minute, block: " + block))
		if now := d.ask(as("GET /", "user", "ann")); now.OK || now.RetryAfter != 10*time.Minute {
			t.Errorf("after a block of %s: %+v, want to be refused for 10m more", block, now)
		}
	}
	d.wait(10 * time.Minute)
	if now := d.ask(as("GET /", "user", "ann")); !now.OK {
		t.Errorf("blocked for longer than told: %+v", now)
	}
}

// Somebody who is blocked while the limit gives way is told when it has room: it may not give way for that long.
func TestBlockOutlastsAGrace(t *testing.T) {
	d := newDesk(t, "identify: { user: client header X-User, plan: client header X-Plan }\nrules:\n"+
		"  - { name: api, per: user, limits: 2/minute, over: { soft: 100%, max_time: 20s }, block: 30s, for: [{ when: { plan: pro }, limits: 9/minute, over: hard }] }\n")
	if first := d.ask(as("GET /", "user", "ann", "plan", "pro")); !first.OK { // counts towards the ceiling alone
		t.Fatalf("%+v", first)
	}
	d.wait(45 * time.Second)
	ann := as("GET /", "user", "ann", "plan", "")
	d.admits(3, ann) // the last above the limit; the ceiling has room again in 15 s, and the grace lasts for 20
	told := d.refuses(ann)
	d.wait(told.RetryAfter)
	if again := d.ask(ann); !again.OK {
		t.Errorf("told %s, came back then, and was refused for %s", told.RetryAfter, again.RetryAfter)
	}
}

// Somebody who is blocked for less than the limit gives way is told the end of the block: then it has room above the
// limit, and neither earlier nor only when the limit has room.
func TestGraceOutlastsABlock(t *testing.T) {
	d := newDesk(t, "identify: { user: client header X-User, plan: client header X-Plan }\nrules:\n"+
		"  - { name: api, per: user, limits: 2/minute, over: { soft: 100%, max_time: 50s }, block: 30s, for: [{ when: { plan: pro }, limits: 9/minute, over: hard }] }\n")
	if first := d.ask(as("GET /", "user", "ann", "plan", "pro")); !first.OK { // counts towards the ceiling alone
		t.Fatalf("%+v", first)
	}
	d.wait(45 * time.Second)
	ann := as("GET /", "user", "ann", "plan", "")
	d.admits(3, ann) // the last above the limit; the ceiling has room again in 15 s, the limit in 60, and the grace lasts for 50
	if told := d.refuses(ann).RetryAfter; told != 30*time.Second {
		t.Errorf("told %s, want 30s", told)
	}
	d.wait(10 * time.Second)
	if told := d.refuses(ann).RetryAfter; told != 20*time.Second {
		t.Errorf("told %s after 10 s, want 20s", told)
	}
	d.wait(20 * time.Second)
	if again := d.ask(ann); !again.OK {
		t.Errorf("came back after the block, and was refused for %s", again.RetryAfter)
	}
}

// Slots in use are found where they were taken, under another lease too.
func TestSlotsInUseOutlastAChange(t *testing.T) {
	d := newDesk(t, rulesOf("concurrency: { slots: 2, lease: 1h }"))
	ctx := context.Background()
	enter := func() (bool, *tidegate.Visit) {
		dec, v := d.gate.Enter(ctx, as("GET /", "user", "ann"))
		return dec.OK, v
	}
	_, first := enter()
	d.reload(rulesOf("concurrency: { slots: 2, lease: 30m }"))
	ok, second := enter()
	if !ok {
		t.Fatal("one of two in use, and refused")
	}
	if ok, _ := enter(); ok {
		t.Fatal("two of two in use, and admitted")
	}
	for _, v := range []*tidegate.Visit{first, second} {
		if err := v.End(tidegate.Outcome{Status: 200}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		if ok, _ := enter(); !ok {
			t.Errorf("%d of two in use, and refused", i)
		}
	}
}

// What is counted by its outcome is given back to both.
func TestPredecessorOfWhatCountsByStatus(t *testing.T) {
	const more = ", count: { status: 401 }, block: 10m"
	d := newDesk(t, rulesOf("limits: { rate: 3/hour, algorithm: token_bucket }"+more))
	try := func(status int) tidegate.Decision {
		dec, v := d.gate.Enter(context.Background(), as("GET /", "user", "ann"))
		if err := v.End(tidegate.Outcome{Status: status}); err != nil {
			t.Fatal(err)
		}
		return dec
	}
	try(401)
	try(401)
	d.reload(rulesOf("limits: 3/hour" + more))
	for range 10 {
		if dec := try(200); !dec.OK {
			t.Fatalf("two wrong passwords of three, and refused: %+v", dec)
		}
	}
	try(401)
	if dec := try(200); dec.OK || dec.RetryAfter != 20*time.Minute {
		t.Errorf("three wrong passwords: %+v, want to be refused by the old bucket, and blocked", dec)
	}
	d.wait(9 * time.Minute)
	if dec := try(200); dec.OK {
		t.Errorf("blocked: %+v", dec)
	}
}
