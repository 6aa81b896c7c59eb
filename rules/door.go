package rules

import (
	"slices"
	"sync"
)

// Door is a front end that is asked whether requests may pass, and does not see them pass.
type Door string

const (
	DoorForwardAuth Door = "forward-auth" // proxies ask by the head of a request
	DoorCheck       Door = "check"        // programs ask over HTTP
	DoorRESP        Door = "resp"         // programs ask by the protocol of Redis
	DoorRLS         Door = "rls"          // Envoy asks by descriptors
)

// Doors returns all there are.
func Doors() []Door { return []Door{DoorForwardAuth, DoorCheck, DoorRESP, DoorRLS} }

// Blind returns a warning for each rule that says something about what a door cannot know
// or do, and what happens instead.
func (s *Set) Blind(d Door) Problems { return slices.Clone(s.blind[d]) }

// DoorWarnings tells what doors cannot know of the rules, once per rule and door, however
// often the rules are loaded. Its zero value has no doors.
type DoorWarnings struct {
	Doors []Door

	mu   sync.Mutex
	told map[string]bool
}

// Of returns what was not told before of s.
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
