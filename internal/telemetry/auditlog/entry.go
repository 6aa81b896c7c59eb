// Package auditlog keeps the record of who did what, when and why: lines of JSON, appended
// to a file and synced to disk before the caller goes on, and shared with the rest of a
// fleet. The file is set aside when it is large; lines are never changed.
//
// It is not for what happens to requests: that is the access log. Start with [Open].
package auditlog

import "time"

// Entry is one line.
type Entry struct {
	ID     string         `json:"id"` // no two entries of a fleet have the same
	At     time.Time      `json:"at"`
	Node   string         `json:"node,omitempty"`   // the instance that was asked
	Who    string         `json:"who"`              // the name of an operator, or what it is in place of one
	Role   string         `json:"role,omitempty"`   // that the operator has
	Via    string         `json:"via,omitempty"`    // local, token, certificate or sso
	Peer   string         `json:"peer,omitempty"`   // the address that the request came from
	Action string         `json:"action"`           // ban, override, end, reset, refund, load, rules, …
	What   map[string]any `json:"what,omitempty"`   // about whom, which rule, until when, …
	Reason string         `json:"reason,omitempty"` // as the operator gave it
	Result string         `json:"result"`           // done, failed or refused
	Error  string         `json:"error,omitempty"`  // why it is not done
	// Skipped is how many refused attempts before this one have no entry.
	Skipped int `json:"skipped,omitempty"`
}
