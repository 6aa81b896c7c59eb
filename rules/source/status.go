package source

import (
	"time"

	"tidegate.dev/tidegate/rules"
)

// Status is the state of the rules in force and of the files they come from.
type Status struct {
	LoadedAt time.Time // when the rules in force were put into force
	Files    []string  // the files they were read from, including includes, lists and keys
	Hash     string    // of the files of rules: equal on all machines with equal files, wherever they come from
	Reloads  int       // how often rules were replaced since the first load
	Failed   int       // how often files could not be put in force
	Layers   []LayerStatus
	None     bool // there are no rules yet, and nothing is limited

	// LastError says why the current state of the files is not in force; "" if it is.
	LastError string
	Problems  rules.Problems // the same as a list
	Since     time.Time      // since when; zero if LastError is ""

	APIKeys *APIKeysStatus    // nil if the rules trust no file of API keys
	JWKS    *rules.JWKSStatus // nil if tokens are not verified by the keys of a URL
}

// LayerStatus is the state of one layer.
type LayerStatus struct {
	Name string `json:"name"`
	// Edition is the edition in force. A file or folder on disk has only a Hash.
	Edition
	Since    time.Time `json:"since,omitzero"` // when it was put into force
	FromCopy bool      `json:"from_copy"`      // it was read from the last good copy, and the source has not confirmed it yet

	// Origin: the layer is not on disk, and the fields below are about its source.
	Origin     bool      `json:"origin"`
	Reached    time.Time `json:"reached,omitzero"`     // when the source last answered; zero means not yet
	Error      string    `json:"error,omitempty"`      // why it does not answer, or what is wrong with its answer
	ErrorSince time.Time `json:"error_since,omitzero"` // since when

	Refused *Refusal `json:"refused,omitempty"` // the newest revision, if it is not in force
}

// Refusal is a revision that could not be put into force.
type Refusal struct {
	Edition
	Since    time.Time      `json:"since"`
	Message  string         `json:"message"` // the same on every machine
	Problems rules.Problems `json:"problems,omitempty"`
}

// Behind reports whether the newest revision of the source may not be in force.
func (l *LayerStatus) Behind() bool {
	return l.FromCopy || l.Error != "" || l.Refused != nil || l.Origin && l.Revision == ""
}

// APIKeysStatus is the state of the file of API keys.
type APIKeysStatus struct {
	File      string    `json:"file"`
	Keys      int       `json:"keys"` // in force
	LoadedAt  time.Time `json:"loaded_at"`
	Hash      string    `json:"hash"`
	Reloads   int       `json:"reloads"`
	Failed    int       `json:"failed"`
	LastError string    `json:"error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}
