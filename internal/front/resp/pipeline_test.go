package resp

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// broken is a store whose code has a fault that one key meets.
type broken struct{ tidegate.Store }

func (b broken) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if strings.Contains(checks[0].Key, "broken") {
		panic("a fault")
	}
	return b.Store.Take(ctx, checks, n)
}

// Commands about a key for which the store panics are answered with an error, each of them, and those
// about other keys of the pipeline are decided.
func TestPanicInAPipeline(t *testing.T) {
	var in strings.Builder
	for _, key := range []string{"broken", "whole", "broken", "whole", "broken"} {
		in.WriteString("CL.THROTTLE " + key + " 0 1 60\r\n")
	}
	reported := 0
	s := New(Options{Store: broken{memory.New()}, Report: func(error) { reported++ }})
	c := &script{in: []byte(in.String())}
	s.done.Add(1)
	newConn(s, c).serve()
	replies := bytes.Split(bytes.TrimSpace(c.out.Bytes()), []byte("\r\n"))
	got := ""
	for _, line := range replies {
		if line[0] == '-' || line[0] == '*' {
			got += string(line[:1])
		}
	}
	if got != "-*-*-" || reported != 1 {
		t.Errorf("answered %q, with %d reports", c.out.Bytes(), reported)
	}
}
