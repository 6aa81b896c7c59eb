package diag

import "fmt"

// String returns the word that operators read, and that JSON has.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText makes JSON say "error" or "warning".
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse, for commands that show what a server has found.
func (s *Severity) UnmarshalText(text []byte) error {
	switch string(text) {
	case "error":
		*s = Error
	case "warning":
		*s = Warning
	default:
		return fmt.Errorf("unknown severity %q", text)
	}
	return nil
}
