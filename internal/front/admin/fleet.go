package admin

import (
	"net/http"
	"time"
)

// Fleet is the instances that share the counters, and what is wrong with them.
type Fleet struct {
	Instances []Instance `json:"instances"`
	// Servers are the masters of a cluster, or the shards, as seen by the answering instance; none
	// if there is only one server.
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
	Backlog int64     `json:"backlog"` // counters there with charges still to be sent
}

// Region is another region, as the store of this one sees it.
type Region struct {
	Name   string  `json:"name"`
	Lag    float64 `json:"lag_seconds"`       // maximum age of what is known about it
	Heard  bool    `json:"heard"`             // false: never heard of
	CutOff bool    `json:"cut_off,omitempty"` // for at least five seconds
}

// Instance is an instance, as described by its last heartbeat.
type Instance struct {
	ID    string `json:"id"`
	Self  bool   `json:"self,omitempty"` // the answering instance
	Known bool   `json:"known"`          // false: an older version without details

	Name    string    `json:"name,omitempty"`
	Version string    `json:"version,omitempty"`
	Rules   string    `json:"rules,omitempty"` // how the hash of its rules begins; see /rules
	Started time.Time `json:"started,omitzero"`
	Seen    time.Time `json:"seen,omitzero"` // its last heartbeat

	// Measures is the version up to which it has the measures; nil means that it does not follow
	// them.
	Measures *int64 `json:"measures,omitempty"`

	Clock   *Clock   `json:"clock,omitempty"` // nil means not compared yet
	Circuit *Circuit `json:"circuit,omitempty"`

	Backlog      int64   `json:"backlog"` // counters with charges still to be sent
	Leases       int     `json:"leases"`
	LeasedEvents int64   `json:"leased_events"`
	Lag          float64 `json:"lag_seconds,omitempty"` // age of what others know of its eventual limits
	Counts       int     `json:"counts"`                // how many instances it counts, including itself
	Share        float64 `json:"share"`                 // its share of a limit when it decides alone
}

// Clock is how far the clock of an instance is ahead of that of Redis.
type Clock struct {
	Offset float64 `json:"offset_seconds"` // less than 0: behind
	Within float64 `json:"within_seconds"` // maximum error of the offset
	Server string  `json:"server,omitempty"`
	Off    bool    `json:"off,omitempty"` // certainly off by more than 0.1 s
}

// Circuit is the state of the store as an instance sees it.
type Circuit struct {
	Status  string    `json:"status"` // ok, partial, degraded, recovering, unknown
	Since   time.Time `json:"since"`
	Servers []string  `json:"servers,omitempty"` // masters or shards that are not ok, the first few
	Count   int       `json:"count,omitempty"`   // how many they are
}

// fleet answers which instances share the counters.
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
