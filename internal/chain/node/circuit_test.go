package node

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what came out into testdata")

// TestCircuitScript plays testdata/circuit.txt: a line is a time, what happens then,
// and behind => what comes of it. "new" starts over.
func TestCircuitScript(t *testing.T) {
	const file = "testdata/circuit.txt"
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	b := circuit{failures: DefaultFailures}
	for lines := bufio.NewScanner(bytes.NewReader(script)); lines.Scan(); {
		line := lines.Text()
		text, _, _ := strings.Cut(line, " => ")
		switch {
		case line == "new":
			b = circuit{failures: DefaultFailures}
			fallthrough
		case line == "" || line[0] == '#':
			fmt.Fprintln(&out, line)
			continue
		}
		words := strings.Fields(text)
		e, times := readEvent(t, words)
		var todo action
		for range times {
			b, todo = b.step(e)
		}
		fmt.Fprintf(&out, "%s => %s\n", text, tell(b, todo, e.now))
	}
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if out.String() != string(script) {
		t.Errorf("%s says otherwise (write it with -update):\n%s", file, out.Bytes())
	}
}

// readEvent reads "3s fail 5 good=100 began=2s chance=0.9".
func readEvent(t *testing.T, words []string) (e event, times int) {
	duration := func(s string) time.Duration {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	e.now = duration(words[0])
	e.began = e.now
	e.kind = map[string]kind{"fail": failed, "tick": tick, "answered": answered, "unanswered": unanswered}[words[1]]
	times = 1
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w, "=")
		var err error
		switch name {
		case "good":
			e.good, err = strconv.ParseUint(value, 10, 64)
		case "began":
			e.began = duration(value)
		case "trip":
			e.trip = duration(value)
		case "chance":
			e.chance, err = strconv.ParseFloat(value, 64)
		default:
			times, err = strconv.Atoi(w)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return e, times
}

func tell(b circuit, todo action, now time.Duration) string {
	text := b.state.String()
	switch {
	case todo == probe:
		text += ", probe"
	case b.state == Degraded:
		text += ", next probe at " + b.next.String()
	case b.state == Recovering:
		text += fmt.Sprintf(", %d/%d of the keys, look again in %s", b.share(now), whole, b.wake(now))
	}
	return text
}

// Whatever happens, in whatever order, it knows when to look again, is never shut for
// longer than a pause without a probe, and comes back once probes are answered.
func TestCircuitAlwaysComesBack(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		b := circuit{failures: 1 + r.IntN(5)}
		var now time.Duration
		for range 500 {
			now += time.Duration(r.Int64N(int64(300 * time.Millisecond)))
			e := event{kind: kind(r.IntN(4)), now: now, began: now - time.Duration(r.Int64N(int64(now)+1)), good: uint64(now / time.Millisecond), chance: r.Float64()}
			b, _ = b.step(e)
			if b.state == Degraded && b.next > now+maxPause {
				t.Fatalf("seed %d: no probe before %s, now is %s", seed, b.next, now)
			}
			if (b.wake(now) == 0) != (b.state == OK) || b.wake(now) > maxPause {
				t.Fatalf("seed %d: %s wakes in %s", seed, b.state, b.wake(now))
			}
		}
		began := now
		for b.state != OK {
			now += b.wake(now)
			var todo action
			if b, todo = b.step(event{kind: tick, now: now}); todo == probe {
				b, _ = b.step(event{kind: answered, now: now, chance: r.Float64()})
			}
			if now-began > maxPause+maxProof+proofEvery+4*rampStep {
				t.Fatalf("seed %d: still %s %s after all is well", seed, b.state, now-began)
			}
		}
	}
}
