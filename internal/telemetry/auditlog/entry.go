// Package auditlog records who did what, when and why: lines of JSON, appended to a file and synced
// to disk before the caller continues, and shared with the rest of a fleet. A large file is
// rotated; lines are never changed.
//
// It is not for what happens to requests: that is the access log. Start with [Open].
package auditlog

import "time"

// Entry is one line.
type Entry struct {
	ID     string         `json:"id"` // unique in the fleet
	At     time.Time      `json:"at"`
	Node   string         `json:"node,omitempty"`   // the instance that received the request
	Who    string         `json:"who"`              // name of an operator, or what identifies the client without one
	Role   string         `json:"role,omitempty"`   // that the operator has
	Via    string         `json:"via,omitempty"`    // local, token, certificate or sso
	Peer   string         `json:"peer,omitempty"`   // the address that the request came from
	Action string         `json:"action"`           // ban, override, end, reset, refund, load, rules, …
	What   map[string]any `json:"what,omitempty"`   // about whom, which rule, until when, …
	Reason string         `json:"reason,omitempty"` // as the operator gave it
	Result string         `json:"result"`           // done, failed or refused
	Error  string         `json:"error,omitempty"`  // why it failed
	// Skipped is how many refused attempts before this one were not recorded.
	Skipped int `json:"skipped,omitempty"`
}
