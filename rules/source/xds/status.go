package xds

import (
	"errors"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules/envoy"
)

// Status is the state of the connection to the control plane and of the rules that it sent.
type Status struct {
	Address   string    `json:"address"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"` // when Connected became what it is

	// These describe the rules in force; they are zero before any were accepted.
	Version  string    `json:"version,omitempty"` // as the server calls it
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	Domains  int       `json:"domains"`

	Updates  int `json:"updates"`  // how often something else was put into force
	Rejected int `json:"rejected"` // how many responses were refused

	// Error is why what the server sent last is not in force, or else why there is no
	// connection; "" if all is well.
	Error    string         `json:"error,omitempty"`
	Problems envoy.Problems `json:"problems,omitempty"`
	// Kept: the server has sent no rules since the connection began, which one that has just
	// started may do; the previous rules stay in force.
	Kept bool `json:"kept,omitempty"`
}

// record is a Status that several goroutines use, and what it is made from.
type record struct {
	mu       sync.Mutex
	is       Status
	refusal  string // why the last response is not in force, as sent to the server; "" if it is
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

// inTheWay returns why the last response was refused, or else why there is no connection; nil if
// neither is so.
func (r *record) inTheWay() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused != nil {
		return r.refused
	}
	return r.trouble
}
