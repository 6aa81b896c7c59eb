package offenders

import (
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
)

// Part is one of the values that a rule counts by.
type Part struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Hashed: Value is the beginning of a SHA-256, as the value may be a secret.
	Hashed bool `json:"hashed,omitempty"`
}

// plainSubject names the parts of a key by what the limit counts by.
func plainSubject(l *tidegate.Limit, key string) []Part {
	names := ScopeOf(l)
	values := SplitKey(key, len(names))
	parts := make([]Part, len(values))
	for i, value := range values {
		name := strings.Join(names, ",")
		if len(values) == len(names) {
			name = names[i]
		}
		parts[i] = Part{Name: name, Value: value}
	}
	return parts
}

// ScopeOf returns the names of what a limit of a rule counts by.
func ScopeOf(l *tidegate.Limit) []string { return strings.Split(scopeOf(l), ",") }

// SplitKey returns the n parts of a key. A key that was too long is a hash, and one part; so is
// any that has another number of parts.
func SplitKey(key string, n int) []string {
	if n == 1 {
		return []string{strings.Clone(key)}
	}
	if parts := FramedParts(key); len(parts) == n {
		return parts
	}
	return []string{strings.Clone(key)}
}

// FramedParts returns the parts of a key that [tidegate.Key] made; nil if it did not, or hashed
// them.
func FramedParts(key string) (parts []string) {
	if single, ok := strings.CutPrefix(key, "="); ok {
		return []string{strings.Clone(single)}
	}
	for rest := key; rest != ""; {
		size, after, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(size)
		if !ok || err != nil || n < 0 || n > len(after) {
			return nil
		}
		parts, rest = append(parts, strings.Clone(after[:n])), after[n:]
	}
	return parts
}
