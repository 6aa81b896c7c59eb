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
	Hash     string    // of these files, but for a JWT key: the same on every machine that has the same
	Reloads  int       // how often other rules were put into force since the first
	Failed   int       // how often what was in the files could not be

	// LastError says why what is in the files now is not in force; "" when it is.
	LastError string
	Problems  rules.Problems // the same, one by one
	Since     time.Time      // when that began; zero when it has not

	APIKeys *APIKeysStatus    // nil if the rules trust no file of API keys
	JWKS    *rules.JWKSStatus // nil if tokens are not verified by the keys of a URL
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
