package diag

// String is the word that operators read, and that JSON has.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText makes JSON say "error" or "warning".
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
