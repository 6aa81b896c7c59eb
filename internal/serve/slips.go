package serve

import (
	"fmt"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/slip"
	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// slips makes the encrypted slips that refused clients get.
type slips struct {
	own   *slip.Sealer                // with a key of this process alone; nil if there is a file of keys
	keyed *followedFile[*slip.Sealer] // nil if there is no file of keys
	node  string
}

// open reads the file of keys, or makes a key for this process if file is "".
func (s *slips) open(server *server, file string) (err error) {
	s.node = server.nodeName()
	if file == "" {
		s.own = slip.NewSealer()
		return nil
	}
	s.keyed, err = followFile("the keys of slips", file, readSlipKeys, server.log)
	return err
}

// sealer returns the Sealer that seals slips and opens them.
func (s *slips) sealer() *slip.Sealer {
	if s.keyed != nil {
		return s.keyed.get()
	}
	return s.own
}

const (
	// maxSlipKeys is the maximum length of the file of keys.
	maxSlipKeys = 64 << 10
	slipKeyHint = "make one with `openssl rand -hex 16`, and have the same file on all instances"
)

// readSlipKeys reads the keys of slips, one per line, newest first.
func readSlipKeys(file string) (*slip.Sealer, error) {
	text, err := bounded.ReadFile(file, maxSlipKeys)
	if err != nil {
		return nil, fmt.Errorf("read the keys of slips: %w", err)
	}
	var keys []string
	var wrong diag.List
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		switch key := strings.TrimSpace(line); {
		case key == "":
		case len(key) < minToken:
			wrong.Add(diag.Problem{
				Pos: diag.Pos{File: file, Line: number, Col: 1}, Severity: diag.Error,
				Message: fmt.Sprintf("the key has %d bytes, and needs at least %d to be hard to guess", len(key), minToken), Hint: slipKeyHint,
			})
		default:
			keys = append(keys, key)
		}
	}
	switch {
	case wrong.HasErrors():
		return nil, wrong
	case len(keys) == 0:
		return nil, diag.List{{Pos: diag.Pos{File: file}, Severity: diag.Error, Message: "there is no key in the file", Hint: slipKeyHint}}
	}
	return slip.NewSealer(keys...), nil
}

// slip returns the slip of a refusal.
func (s *server) slip(checks []tidegate.Check, d *tidegate.Decision) string {
	is := slip.Of(checks, d, time.Now())
	is.Node, is.Rules = s.slips.node, shownRevision(s.revision())
	return s.slips.sealer().Seal(&is)
}

// slipOf is slip for front ends that do not see the checks of a request. It matches the request
// again, which charges nothing.
func (s *server) slipOf(r *tidegate.Request, d *tidegate.Decision) string {
	var checks []tidegate.Check
	if s.rules != nil {
		r.Looking = true // its decision was already counted
		checks = s.rules.live.Match(r, nil)
	}
	return s.slip(checks, d)
}
