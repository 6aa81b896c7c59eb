package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/describe"
)

// draft is a request that is being described: by flags, by a curl line, or by
// JSON.
type draft struct {
	describe.Request
	curl, file string           // of --curl and --request
	fields     []describe.Field // of a form, from --form
	parts      []describe.Field // of a multipart form, from --curl
}

// newDraft returns an empty request that comes from ip.
func newDraft(ip string) draft {
	return draft{Request: describe.Request{Header: make(http.Header), IP: ip, As: make(map[string]string)}}
}

// flags adds the flags that describe a request. as and cost are the help of --as and --cost.
func (d *draft) flags(flags *flag.FlagSet, as, cost string) {
	flags.Func("as", as, d.addIdentity)
	flags.Func("H", "`HEADER: VALUE` of the request; may be repeated", d.addHeader)
	flags.StringVar(&d.IP, "ip", d.IP, "`ADDRESS` that the request comes from")
	flags.StringVar(&d.Body, "body", "", "`JSON` body of the request")
	flags.Func("form", "`NAME=VALUE` of a form that is the body of the request; may be repeated", d.addField)
	flags.Int64Var(&d.Cost, "cost", 0, cost)
	flags.StringVar(&d.curl, "curl", "", "the request as a curl command `LINE`")
	flags.StringVar(&d.file, "request", "", "the request as JSON in `FILE`; - is standard input")
}

// methods are offered by completion, and are not taken for hosts.
var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"}

var errCost = errors.New("the cost is a number above 0")

// describe fills the draft from whichever way the request was given.
func (d *draft) describe(env Env, args []string) error {
	variants := 0
	for _, given := range []bool{len(args) > 0, d.curl != "", d.file != ""} {
		if given {
			variants++
		}
	}
	switch {
	case d.Cost < 0:
		return errCost
	case variants == 0:
		return fmt.Errorf("no request: write, for example, POST /posts")
	case variants > 1:
		return fmt.Errorf("give the request once: as METHOD URL, by --curl or by --request")
	case d.curl != "":
		return d.fromCurl(d.curl)
	case d.file != "":
		return d.fromJSON(d.file, env.Stdin)
	case len(args) > 2:
		return fmt.Errorf("the request is METHOD and URL, but there is also %q", args[2])
	case len(args) == 2:
		d.Method, d.URL = args[0], args[1]
	case slices.Contains(methods, args[0]):
		return fmt.Errorf("%s is a method without a URL: write, for example, %[1]s /posts", args[0])
	default:
		d.URL = args[0]
	}
	return d.setBody()
}

// plain is a draft as the JSON of --request.
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
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("the request in %s: there is more after it; ask about one request at a time", name)
	}
	if p.Cost < 0 {
		return errCost
	}
	d.Method, d.URL, d.Cost = p.Method, p.URL, p.Cost
	if p.IP != "" {
		d.IP = p.IP
	}
	d.AddHeaders(p.Headers)
	maps.Copy(d.As, p.As)
	if len(p.Body) > 0 {
		d.Body = string(p.Body)
		d.SetJSON()
	}
	return nil
}

// addField takes email=ann, a field of a form.
func (d *draft) addField(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write, for example, email=ann@example.com")
	}
	d.fields = append(d.fields, describe.Field{Name: name, Value: value})
	return nil
}

// setBody sets the body, and its content type, from --body or --form.
func (d *draft) setBody() error {
	switch {
	case d.fields != nil && d.Body != "":
		return errors.New("give the body once: by --body or by --form")
	case d.fields != nil:
		d.SetForm(d.fields)
	case d.Body != "":
		d.SetJSON()
	}
	return nil
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
	if was, twice := d.As[name]; twice && was != value {
		return fmt.Errorf("there is %s=%s already, and nobody is both", name, was)
	}
	d.As[name] = value
	return nil
}

// known returns an error if --as names an identity that the rules do not have.
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
