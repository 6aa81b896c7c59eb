package rules

import (
	"slices"
	"sync"
)

// Door is a front end that answers whether requests may pass, but does not forward them.
type Door string

const (
	DoorForwardAuth Door = "forward-auth" // proxies ask by the head of a request
	DoorCheck       Door = "check"        // programs ask over HTTP
	DoorRESP        Door = "resp"         // programs ask by the protocol of Redis
	DoorRLS         Door = "rls"          // Envoy asks by descriptors
)

// Doors returns all doors.
func Doors() []Door { return []Door{DoorForwardAuth, DoorCheck, DoorRESP, DoorRLS} }

// Blind returns a warning for each rule that needs what a door cannot know or do, with what happens
// instead.
func (s *Set) Blind(d Door) Problems { return slices.Clone(s.blind[d]) }

// DoorWarnings collects what doors cannot know about the rules, once per rule and door, however
// often the rules are loaded. Its zero value has no doors.
type DoorWarnings struct {
	Doors []Door

	mu   sync.Mutex
	told map[string]bool
}

// Of returns the warnings about s that it has not returned before.
func (w *DoorWarnings) Of(s *Set) Problems {
	w.mu.Lock()
	defer w.mu.Unlock()
	var fresh Problems
	for _, door := range w.Doors {
		for _, p := range s.blind[door] {
			if w.told[p.Message] { // it names the rule and the door
				continue
			}
			if w.told == nil {
				w.told = make(map[string]bool)
			}
			w.told[p.Message] = true
			fresh.Add(p)
		}
	}
	return fresh
}
