package chain

import "unicode/utf8"

// HandedKey is the key of a counter in a JSON file that one process writes for its successor. JSON
// strings are UTF-8, and a key need not be: without Raw it would come back as another key.
type HandedKey struct {
	Key string
	Raw []byte `json:",omitempty"` // the key, if it is not UTF-8; earlier versions do not know it
}

// HandKey returns key as it is written to the file.
func HandKey(key string) HandedKey {
	h := HandedKey{Key: key}
	if !utf8.ValidString(key) {
		h.Raw = []byte(key)
	}
	return h
}

// Is returns the key.
func (h *HandedKey) Is() string {
	if len(h.Raw) > 0 {
		return string(h.Raw)
	}
	return h.Key
}
