package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// handed is what a Node hands over to that of a successor: all that it needs to decide while the
// backend is away. Without it, every handover in an outage would refill everybody.
type handed struct {
	Version   int
	Key       hashKey
	Local     []byte // a snapshot of the local store
	Seen      []handedSeen
	Backlog   []handedEntry `json:"Debts"` // the name in files of earlier versions
	Posts     []handedPost
	Releases  []handedRelease
	Epoch     uint64 // of Denials
	Denials   []handedDenial
	Instances int
	Away      bool `json:",omitempty"` // the backend is a single server, and its circuit is open
}

const handedVersion = 1

// handedSeen is what was seen of a counter. Earlier versions do not say when: it then counts as seen
// just now, which admits less rather than more.
type handedSeen struct {
	Name uint64
	Used int64
	When int64 `json:",omitempty"` // in milliseconds since the Unix epoch
}

// handedEntry is an entry of the backlog.
type handedEntry struct {
	Limit handedLimit
	chain.HandedKey
	Nodes    int64
	Admitted int64
	Used     float64
	Last     time.Time
	Known    float64
	When     time.Time
}

// handedLimit is a limit without its Terms, which are not needed to charge it.
type handedLimit struct {
	Name, Scope   string
	Algorithm     tidegate.Algorithm
	Events, Burst int64
	Period        time.Duration
	Parts         int
	Ceiling       bool
	CountRejected bool
	Calendar      tidegate.Calendar
	Zone          string
	Anchor        int
	RawTime       bool `json:",omitempty"`
}

func handLimit(l *tidegate.Limit) handedLimit {
	s := &l.Spec
	return handedLimit{
		s.Name, s.Scope, s.Algorithm, s.Events, s.Burst, s.Period, s.Parts,
		s.Ceiling, s.CountRejected, s.Calendar, s.Zone, s.Anchor, s.RawTime,
	}
}

func (l *handedLimit) limit() (*tidegate.Limit, error) {
	return tidegate.NewLimit(tidegate.Spec{
		Name: l.Name, Scope: l.Scope, Algorithm: l.Algorithm, Events: l.Events, Burst: l.Burst, Period: l.Period, Parts: l.Parts,
		Ceiling: l.Ceiling, CountRejected: l.CountRejected, Calendar: l.Calendar, Zone: l.Zone, Anchor: l.Anchor, RawTime: l.RawTime,
	})
}

// HandOver writes to a file what a successor needs. From then on the successor posts the backlog,
// and this node does not, until Resume is called.
func (n *Node) HandOver(file string) error {
	h := handed{Version: handedVersion, Key: n.seen.key, Instances: int(n.nodes())}
	n.mu.Lock()
	n.handedOver = true
	h.Away = len(n.all()) == 1 && n.all()[0].circuit.state == Degraded
	for _, s := range n.all() {
		for id, d := range s.backlog.entries {
			h.Backlog = append(h.Backlog, n.handEntry(id, d))
		}
		h.Posts = append(h.Posts, s.handPostsLocked()...)
		h.Releases = append(h.Releases, s.handReleasesLocked()...)
	}
	n.mu.Unlock()
	h.Seen = n.handSeen()
	h.Epoch, h.Denials = n.deny.epoch.Load(), n.handDenials()
	err := n.local.Snapshot(file)
	if err == nil {
		h.Local, err = os.ReadFile(file)
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(&h)
	}
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		n.Resume()
		return fmt.Errorf("hand over what is counted locally: %w", err)
	}
	return nil
}

func (n *Node) handEntry(id counterID, d *backlogEntry) handedEntry {
	return handedEntry{
		Limit: handLimit(d.limit), HandedKey: chain.HandKey(id.key), Nodes: d.nodes, Admitted: d.admitted, Used: d.used, Last: n.toHandOver(d.last), Known: d.known, When: n.toHandOver(d.when),
	}
}

// Resume undoes HandOver: no successor has taken over, so this node posts the backlog again.
func (n *Node) Resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handedOver = false
}

// TakeOver reads the file of a predecessor. Call it before the first request. It returns how many
// instances there were.
func (n *Node) TakeOver(file string) (instances int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("take over what was counted locally: %w", err)
		}
	}()
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var h handed
	if err := json.Unmarshal(text, &h); err != nil {
		return 0, err
	}
	if h.Version != handedVersion {
		return 0, fmt.Errorf("version %d of the file, want %d", h.Version, handedVersion)
	}
	own := file + ".local"
	defer os.Remove(own)
	if err := os.WriteFile(own, h.Local, 0o600); err != nil {
		return 0, err
	}
	local, err := memory.Restore(own, memory.Config{MaxBytes: n.o.LocalBytes, Now: n.o.clock()})
	if err != nil {
		return 0, err
	}
	n.local = local
	n.seen.key = h.Key
	n.takeOverSeen(h.Seen)
	for i := range h.Posts { // before the entries, which are posted as soon as there is one: a counter has one post at a time
		n.takeOverPost(&h.Posts[i])
	}
	for i := range h.Backlog {
		n.takeOverEntry(&h.Backlog[i])
	}
	for i := range h.Releases {
		n.takeOverRelease(&h.Releases[i])
	}
	n.takeOverDenials(h.Denials, h.Epoch)
	if h.Away {
		n.server(0).awayBefore()
	}
	return h.Instances, nil
}

// awayBefore opens the circuit, so that requests need not find out that the server is away.
func (s *server) awayBefore() {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now() // these failures have begun when they are counted: earlier ones would not open it
	s.failLocked(errAwayBefore, now, now, n.o.Failures)
}

var errAwayBefore = errors.New("it did not answer the process before this one")

// takeOverEntry adds to the backlog what a predecessor still had to charge.
func (n *Node) takeOverEntry(d *handedEntry) {
	l, err := d.Limit.limit()
	if err != nil { // of a version that knows more
		n.mu.Lock()
		defer n.mu.Unlock()
		n.server(0).backlog.lost++
		return
	}
	id := counterID{l.Identity(), d.Is()}
	s := n.serverOf(&tidegate.Check{Limit: l, Key: id.key})
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.entryOf(d, l)
	if s.backlog.enter(id, one, 0) {
		s.backlog.markUrgent(id, one)
		s.held.note(n.seen.name(l, id.key))
		s.repayLocked()
	}
}

func (n *Node) entryOf(d *handedEntry, l *tidegate.Limit) *backlogEntry {
	return &backlogEntry{
		limit: l, nodes: max(d.Nodes, 1), admitted: d.Admitted, used: d.Used, last: d.Last.Sub(n.start),
		known: d.Known, when: d.When.Sub(n.start),
	}
}
