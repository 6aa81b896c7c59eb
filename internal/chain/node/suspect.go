package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// When a call fails in which several servers take part, it is not known which of them is to
// blame. Each is suspected and probed: servers that answer are cleared, and for the others the
// failure counts in their circuits.

// examineEvery is the pause between two probes of a suspected server that does not answer.
const examineEvery = 5 * time.Millisecond

// suspect starts to examine a server that may be to blame for the failure of so many requests.
func (s *server) suspect(requests int) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.circuit.state != OK || n.closed { // it is being probed already
		return
	}
	s.suspected += requests
	if !s.examined {
		s.examined = true
		n.stopped.Go(s.examine)
	}
}

// examine probes a suspected server until it shows that it is there, or its circuit is open.
func (s *server) examine() {
	n := s.node
	for {
		began := n.now()
		err := s.askProbe()
		well := showsLife(err) || unsure(err) && s.heardSince(began) // it is there, and has much to do
		n.mu.Lock()
		requests := max(s.suspected, 1)
		s.suspected = 0
		if well {
			s.good.Add(1)
		} else {
			s.stepCircuitLocked(event{kind: failed, now: n.now(), began: began, times: requests, good: s.good.Load()}, err)
		}
		if well || s.circuit.state != OK || n.closed {
			s.examined = false
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
		select {
		case <-time.After(examineEvery):
		case <-n.stop:
		}
	}
}

// probing is the limit that probes charge: a probe is an ordinary write, in case only reads work.
var probing = tidegate.MustLimit(tidegate.Spec{Name: "tidegate-probe", Algorithm: tidegate.TokenBucket, Events: 1000, Period: time.Second})

const (
	probeKeys  = 16      // of a server, so that not all probes are of one slot
	maxSearch  = 1 << 16 // keys that are looked at to find one that lives on a server
	probeStart = 1 << 20
)

// probeKey returns a key that lives on the server, or any key if it finds none.
func (s *server) probeKey() string {
	n := s.node
	first := rand.IntN(probeKeys)
	key := fmt.Sprint(first)
	for i := 0; i < maxSearch && n.server(n.inner.Server(probing, key)) != s; i++ {
		key = fmt.Sprint(probeStart*first + i)
	}
	return key
}

// askProbe sends a probe to the server. Its result does not count in the circuit by itself.
func (s *server) askProbe() error {
	n := s.node
	key := s.probeKey()
	n.count.probes.Add(1)
	return s.callInner(context.Background(), true, func(ctx context.Context) error {
		_, err := n.inner.Take(ctx, []tidegate.Check{{Key: key, Limit: probing, Cost: 1}}, 1)
		return err
	})
}
