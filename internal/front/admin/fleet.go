package admin

import (
	"net/http"
	"time"
)

// Fleet is the instances that share the counters, and what is wrong with them.
type Fleet struct {
	Instances []Instance `json:"instances"`
	// Servers are the masters of a cluster, or the shards, as the instance finds them that
	// answers; none if there is one server.
	Servers []StoreServer `json:"servers,omitempty"`
	// Regions are the other regions of a fleet in several.
	Regions []Region `json:"regions,omitempty"`
	// Incomplete says which servers of the store could not be asked.
	Incomplete string   `json:"incomplete,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
}

// StoreServer is a master of a cluster, or a shard.
type StoreServer struct {
	Name    string    `json:"name"`
	Status  string    `json:"status"` // ok, degraded, recovering
	Since   time.Time `json:"since"`
	Backlog int64     `json:"backlog"` // counters there that something is still to be charged to
}

// Region is another region, as far as the store of this one hears of it.
type Region struct {
	Name   string  `json:"name"`
	Lag    float64 `json:"lag_seconds"`       // how old what is known of it may be
	Heard  bool    `json:"heard"`             // false: never
	CutOff bool    `json:"cut_off,omitempty"` // for five seconds or more
}

// Instance is one of them, as its last heartbeat described it.
type Instance struct {
	ID    string `json:"id"`
	Self  bool   `json:"self,omitempty"` // it is the one that answers
	Known bool   `json:"known"`          // false: it is of an older version, which tells nothing

	Name    string    `json:"name,omitempty"`
	Version string    `json:"version,omitempty"`
	Rules   string    `json:"rules,omitempty"` // how the hash of its rules begins; see /rules
	Started time.Time `json:"started,omitzero"`
	Seen    time.Time `json:"seen,omitzero"` // its last heartbeat

	// Measures is up to which version it has what operators have ordered; nil means it does not
	// follow that.
	Measures *int64 `json:"measures,omitempty"`

	Clock   *Clock   `json:"clock,omitempty"` // nil means not compared yet
	Circuit *Circuit `json:"circuit,omitempty"`

	Backlog      int64   `json:"backlog"` // counters that something is still to be charged to
	Leases       int     `json:"leases"`
	LeasedEvents int64   `json:"leased_events"`
	Lag          float64 `json:"lag_seconds,omitempty"` // how old what others know of its eventual limits is
	Counts       int     `json:"counts"`                // instances, this one included
	Share        float64 `json:"share"`                 // of a limit, where it decides alone
}

// Clock is how far the clock of an instance is ahead of that of Redis.
type Clock struct {
	Offset float64 `json:"offset_seconds"` // less than 0: behind
	Within float64 `json:"within_seconds"` // how far that may be wrong
	Server string  `json:"server,omitempty"`
	Off    bool    `json:"off,omitempty"` // by more than 0.1 s for certain
}

// Circuit is how an instance finds Redis.
type Circuit struct {
	Status  string    `json:"status"` // ok, partial, degraded, recovering, unknown
	Since   time.Time `json:"since"`
	Servers []string  `json:"servers,omitempty"` // masters of a cluster or shards that are not ok, the first few
	Count   int       `json:"count,omitempty"`   // how many they are
}

// fleet answers who shares the counters.
func (s *server) fleet(r *http.Request) (any, error) {
	if s.Fleet == nil {
		return nil, problemf(http.StatusNotFound, "The counters are in the memory of this process: there is no fleet that shares them.")
	}
	is, err := s.Fleet(r.Context())
	if err != nil {
		return nil, problemf(http.StatusServiceUnavailable, "The store does not say who shares the counters: %v.", err)
	}
	return is, nil
}
