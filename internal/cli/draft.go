package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/describe"
)

// draft is a request that is being described: by flags, by a curl line, or by
// JSON.
type draft struct{ describe.Request }

func newDraft() draft {
	return draft{describe.Request{Header: make(http.Header), IP: describe.Someone, As: make(map[string]string)}}
}

// plain is a draft as JSON.
type plain struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	IP      string            `json:"ip"`
	Cost    int64             `json:"cost"`
	As      map[string]string `json:"as"`
}

// maxRequest is how long a request as JSON may be.
const maxRequest = 1 << 20

// fromJSON reads a file, or standard input for "-".
func (d *draft) fromJSON(name string, stdin io.Reader) error {
	var src []byte
	var err error
	if name == "-" {
		src, err = bounded.All(stdin, maxRequest)
	} else {
		src, err = bounded.ReadFile(name, maxRequest)
	}
	if err != nil {
		return err
	}
	var p plain
	dec := json.NewDecoder(strings.NewReader(string(src)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return fmt.Errorf("the request in %s: %w", name, err)
	}
	d.Method, d.URL, d.Cost = p.Method, p.URL, p.Cost
	if p.IP != "" {
		d.IP = p.IP
	}
	for name, value := range p.Headers {
		d.Header.Set(name, value)
	}
	maps.Copy(d.As, p.As)
	if len(p.Body) > 0 {
		d.Body = string(p.Body)
		d.asJSON()
	}
	return nil
}

func (d *draft) asJSON() {
	if d.Header.Get("Content-Type") == "" {
		d.Header.Set("Content-Type", "application/json")
	}
}

func (d *draft) addHeader(line string) error {
	name, value, ok := strings.Cut(line, ":")
	if !ok || name == "" {
		return fmt.Errorf("the header %q has no colon: write 'X-Api-Key: abc'", line)
	}
	d.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	return nil
}

// addIdentity takes user=42.
func (d *draft) addIdentity(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write, for example, user=42")
	}
	d.As[name] = value
	return nil
}

// known holds what was given to the identities that the rules have.
func (d *draft) known(names []string) (err error) {
	d.Unknown(names, func(name, near string) {
		switch {
		case err != nil:
		case near != "":
			err = fmt.Errorf("the rules have no identity %q; did you mean %q?", name, near)
		default:
			err = fmt.Errorf("the rules have no identity %q, only %s", name, strings.Join(names, ", "))
		}
	})
	return err
}
