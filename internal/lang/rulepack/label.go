package rulepack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Label is what an archive keeps about a revision beside its files.
type Label struct {
	Digest string    `json:"digest"`         // of the files: see [Digest]
	Hash   string    `json:"hash,omitempty"` // of the files, as instances show it for the rules in force
	Main   string    `json:"main,omitempty"` // file or folder/ that the first layer begins with; "" is the folder at the top
	Over   []string  `json:"over,omitempty"` // the same of further layers
	Author string    `json:"author,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"` // when it was published, if the archive has no clock
	// Revision is its name, where that cannot be made of its number and Digest.
	Revision string `json:"revision,omitempty"`
}

// Bounds of a Label.
const (
	maxWho  = 256     // bytes of an author
	maxWhy  = 2048    // bytes of a reason
	maxText = 8 << 10 // bytes of the text
)

// String returns the label as it is kept, in JSON. It returns an error if the label is too long.
func (l *Label) String() (string, error) {
	switch {
	case len(l.Author) > maxWho:
		return "", fmt.Errorf("the author is longer than %d bytes", maxWho)
	case len(l.Reason) > maxWhy:
		return "", fmt.Errorf("the reason is longer than %d bytes", maxWhy)
	}
	text, err := json.Marshal(l)
	if err == nil && len(text) > maxText {
		err = errors.New("what is said about the revision is too long")
	}
	return string(text), err
}

// ParseLabel reads a label as it is kept. It returns an error if the text is not one, or has the path of a
// file that [CheckName] refuses. Whether there is such a file is not checked.
func ParseLabel(text string) (l Label, err error) {
	if len(text) > maxText || json.Unmarshal([]byte(text), &l) != nil || len(l.Digest) != 64 || strings.Trim(l.Digest, "0123456789abcdef") != "" {
		return Label{}, errors.New("it was not written by this version of Tidegate")
	}
	for _, main := range l.Mains() {
		if main == "" {
			continue // the folder at the top
		}
		if err := CheckName(strings.TrimSuffix(main, "/")); err != nil {
			return Label{}, err
		}
	}
	return l, nil
}

// Mains returns the file or folder that each layer begins with.
func (l *Label) Mains() []string { return append([]string{l.Main}, l.Over...) }

// Revision returns the name of a revision, such as 8-3f2a9c01. The first eight digits of the digest are part of it: an
// archive that has lost everything counts from 1 again, and other files under an old number
// must not pass for those that a node has.
func Revision(number int64, digest string) string {
	return strconv.FormatInt(number, 10) + "-" + digest[:8]
}

// Means reports whether text names the revision: by its whole name, or by its number alone.
func Means(text, revision string) bool {
	number, _, _ := strings.Cut(revision, "-")
	return text == revision || text == number
}
