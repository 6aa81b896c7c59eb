package source

import (
	"time"

	"tidegate.dev/tidegate/rules"
)

// Status is what there is to know about the rules in force and the files they
// come from.
type Status struct {
	LoadedAt time.Time // when the rules in force were put into force
	Files    []string  // they were read from, included ones, lists and keys too
	Hash     string    // of the files of rules: the same on every machine that has the same, wherever they come from
	Reloads  int       // how often other rules were put into force since the first
	Failed   int       // how often what was in the files could not be
	Layers   []LayerStatus
	None     bool // there are no rules yet, and nothing is limited

	// LastError says why what is in the files now is not in force; "" when it is.
	LastError string
	Problems  rules.Problems // the same, one by one
	Since     time.Time      // when that began; zero when it has not

	APIKeys *APIKeysStatus    // nil if the rules trust no file of API keys
	JWKS    *rules.JWKSStatus // nil if tokens are not verified by the keys of a URL
}

// LayerStatus is the same about one of the places that the rules come from.
type LayerStatus struct {
	Name string `json:"name"`
	// Edition is what is in force of it. A file or folder on disk has a Hash alone.
	Edition
	Since    time.Time `json:"since,omitzero"` // when it was put into force
	FromCopy bool      `json:"from_copy"`      // it was read from the last good copy, and the source has not confirmed it yet

	// Origin: it is not on disk, and the fields below say how the source does.
	Origin     bool      `json:"origin"`
	Reached    time.Time `json:"reached,omitzero"`     // when the source last answered; zero means not yet
	Error      string    `json:"error,omitempty"`      // why it does not, or what is wrong with its answer
	ErrorSince time.Time `json:"error_since,omitzero"` // when that began

	Refused *Refusal `json:"refused,omitempty"` // the newest that is not in force
}

// Refusal is a revision that could not be put into force.
type Refusal struct {
	Edition
	Since    time.Time      `json:"since"`
	Message  string         `json:"message"` // the same on every machine
	Problems rules.Problems `json:"problems,omitempty"`
}

// Behind reports whether something else may be in force than the newest that the source has.
func (l *LayerStatus) Behind() bool {
	return l.FromCopy || l.Error != "" || l.Refused != nil || l.Origin && l.Revision == ""
}

// APIKeysStatus is the same about the file of API keys.
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
