package deferq

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// record is an entry as stores encode it: JSON, with the parts that JSON cannot represent.
type record struct {
	*Entry
	Raw *rawParts `json:"raw,omitempty"`
}

// rawParts are the parts of an entry that are not UTF-8. Clients choose them. JSON would replace
// their bytes, and the entry would get another key, with another counter.
type rawParts struct {
	Key    []byte              `json:"key,omitempty"`    // of the line
	Checks [][]byte            `json:"checks,omitempty"` // the keys of all checks
	URL    []byte              `json:"url,omitempty"`
	Header map[string][][]byte `json:"header,omitempty"` // all values of a name
}

// encode returns the record of an entry, without the body of its request.
func encode(e *Entry) ([]byte, error) { return json.Marshal(record{e, rawOf(e)}) }

// decode returns the entry of a record, without the body of its request. The error is a
// *versionError if the record has another version.
func decode(text []byte) (*Entry, error) {
	r := record{Entry: new(Entry)}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if r.V != Version {
		return nil, &versionError{r.V}
	}
	if r.Raw != nil {
		r.Raw.restore(r.Entry)
	}
	return r.Entry, nil
}

// versionError says that a record has another version than this program writes.
type versionError struct{ is int }

func (e *versionError) Error() string {
	return fmt.Sprintf("its version is %d, and this program knows %d", e.is, Version)
}

// rawOf returns the parts of an entry that are not UTF-8; nil if there are none.
func rawOf(e *Entry) *rawParts {
	var raw rawParts
	found := false
	if notText(e.Line.Key) {
		raw.Key, found = []byte(e.Line.Key), true
	}
	if slices.ContainsFunc(e.Checks, func(c Check) bool { return notText(c.Key) }) {
		found = true
		for _, c := range e.Checks {
			raw.Checks = append(raw.Checks, []byte(c.Key))
		}
	}
	if notText(e.Request.URL) {
		raw.URL, found = []byte(e.Request.URL), true
	}
	for name, values := range e.Request.Header {
		if !slices.ContainsFunc(values, notText) {
			continue
		}
		if raw.Header == nil {
			raw.Header, found = make(map[string][][]byte), true
		}
		for _, v := range values {
			raw.Header[name] = append(raw.Header[name], []byte(v))
		}
	}
	if !found {
		return nil
	}
	return &raw
}

func notText(s string) bool { return !utf8.ValidString(s) }

// restore puts the raw parts into a decoded entry.
func (raw *rawParts) restore(e *Entry) {
	if raw.Key != nil {
		e.Line.Key = string(raw.Key)
	}
	for i := range min(len(raw.Checks), len(e.Checks)) {
		e.Checks[i].Key = string(raw.Checks[i])
	}
	if raw.URL != nil {
		e.Request.URL = string(raw.URL)
	}
	for name, values := range raw.Header {
		if e.Request.Header[name] == nil {
			continue // the header was not kept
		}
		for i, v := range values[:min(len(values), len(e.Request.Header[name]))] {
			e.Request.Header[name][i] = string(v)
		}
	}
}
