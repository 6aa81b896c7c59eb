package xds

import (
	"errors"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules/envoy"
)

// Status is what there is to know about the control plane and the rules it sent.
type Status struct {
	Address   string    `json:"address"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"` // when Connected became what it is

	// Of what is in force. Before the server has sent anything, that is nothing.
	Version  string    `json:"version,omitempty"` // as the server calls it
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	Domains  int       `json:"domains"`

	Updates  int `json:"updates"`  // how often something else was put into force
	Rejected int `json:"rejected"` // how many responses were refused

	// Error is why what the server sent last is not in force, or else why there is no
	// connection; "" if all is well.
	Error    string         `json:"error,omitempty"`
	Problems envoy.Problems `json:"problems,omitempty"`
	// Kept: the server has no rules at all since the connection began, as one that has just
	// been started may; those before are in force.
	Kept bool `json:"kept,omitempty"`
}

// record is a Status that several goroutines use.
type record struct {
	mu       sync.Mutex
	is       Status
	refusal  string // why what the server sent last is not in force, as it was told; "" if it is
	refused  error  // the same, with every problem
	trouble  error  // why there is no connection
	answered bool   // a server has sent something that was accepted
}

func (r *record) edit(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// accepted is called, within edit, when what the server sent last is in force.
func (r *record) accepted() { r.refusal, r.refused = "", nil }

func (r *record) read() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := r.is
	if r.refusal != "" {
		is.Error = r.refusal
		var list diag.List
		if errors.As(r.refused, &list) {
			is.Problems = list
		}
	} else if r.trouble != nil {
		is.Error = r.trouble.Error()
	}
	return is
}

// inTheWay returns why there are no rules, nil if nothing is known.
func (r *record) inTheWay() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused != nil {
		return r.refused
	}
	return r.trouble
}
