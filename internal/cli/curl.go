package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"tidegate.dev/tidegate/internal/lang/describe"
)

// curlValue has the options of curl that take a value, with their meaning here: "" if rules do not
// depend on it.
var curlValue = map[string]string{
	"-X": "method", "--request": "method",
	"-H": "header", "--header": "header",
	"-d": "data", "--data": "data", "--data-raw": "data", "--data-binary": "data", "--data-ascii": "data",
	"--json": "json", "--data-urlencode": "encode",
	"-F": "part", "--form": "part", "--form-string": "part",
	"-u": "user", "--user": "user",
	"-b": "cookie", "--cookie": "cookie",
	"-A": "agent", "--user-agent": "agent",
	"-e": "referer", "--referer": "referer",
	"--url": "url", "--oauth2-bearer": "bearer",
	"-o": "", "--output": "", "-w": "", "--write-out": "", "-m": "", "--max-time": "", "--connect-timeout": "",
	"--cacert": "", "-E": "", "--cert": "", "--key": "", "--retry": "", "-x": "", "--proxy": "", "--resolve": "",
}

// curlFlag has the options that take no value.
var curlFlag = map[string]string{
	"-I": "head", "--head": "head", "-G": "get", "--get": "get",
	"-s": "", "--silent": "", "-S": "", "--show-error": "", "-i": "", "--include": "", "-v": "", "--verbose": "",
	"-k": "", "--insecure": "", "-L": "", "--location": "", "-f": "", "--fail": "", "-N": "", "--no-buffer": "",
	"-#": "", "--compressed": "", "--http1.1": "", "--http2": "", "-4": "", "-6": "", "-O": "", "-sS": "", "-sv": "", "-si": "",
}

// fromCurl reads a command line of curl, as copied from a browser or a runbook.
func (d *draft) fromCurl(line string) error {
	words, err := shellWords(line)
	if err != nil {
		return err
	}
	if len(words) > 0 && words[0] == "curl" {
		words = words[1:]
	}
	head, get := false, false
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !strings.HasPrefix(w, "-") || w == "-" {
			if d.URL != "" {
				return fmt.Errorf("the curl line has two addresses, %s and %s", d.URL, w)
			}
			d.URL = w
			continue
		}
		if what, ok := curlFlag[w]; ok {
			head, get = head || what == "head", get || what == "get"
			continue
		}
		name, value, joined := strings.Cut(w, "=")
		if !strings.HasPrefix(w, "--") && len(w) > 2 {
			name, value, joined = w[:2], w[2:], true // -XPOST
		}
		what, ok := curlValue[name]
		if !ok {
			return fmt.Errorf("the curl option %s is not known here: leave it out", w)
		}
		if !joined {
			if i++; i == len(words) {
				return fmt.Errorf("the curl option %s needs a value", w)
			}
			value = words[i]
		}
		if err := d.curlOption(what, value); err != nil {
			return err
		}
	}
	return d.curlMethod(head, get)
}

func (d *draft) curlOption(what, value string) error {
	switch what {
	case "method":
		d.Method = value
	case "header":
		return d.addHeader(value)
	case "part":
		return d.curlPart(value)
	case "data", "json", "encode":
		if strings.HasPrefix(value, "@") {
			return fmt.Errorf("%s: give the data itself, not a file", value)
		}
		if what == "encode" {
			value = curlEncoded(value)
		}
		if d.Body != "" {
			value = d.Body + "&" + value
		}
		d.Body = value
		if what == "json" {
			d.Header.Set("Content-Type", "application/json")
		}
	case "user":
		d.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(value)))
	case "bearer":
		d.Header.Set("Authorization", "Bearer "+value)
	case "cookie":
		d.Header.Add("Cookie", value)
	case "agent":
		d.Header.Set("User-Agent", value)
	case "referer":
		d.Header.Set("Referer", value)
	case "url":
		d.URL = value
	}
	return nil
}

// curlPart adds a field of a multipart form. A field whose value is a file is an error.
func (d *draft) curlPart(value string) error {
	name, value, ok := strings.Cut(value, "=")
	if !ok || name == "" {
		return fmt.Errorf("the field %q of the curl line has no value: write -F name=value", name)
	}
	if strings.HasPrefix(value, "@") || strings.HasPrefix(value, "<") {
		return fmt.Errorf("%s: give the data itself, not a file", value)
	}
	d.parts = append(d.parts, describe.Field{Name: name, Value: value})
	d.SetMultipart(d.parts)
	return nil
}

// curlEncoded returns what --data-urlencode sends for content, =content or name=content.
func curlEncoded(value string) string {
	name, content, ok := strings.Cut(value, "=")
	switch {
	case !ok:
		return url.QueryEscape(value)
	case name == "":
		return url.QueryEscape(content)
	}
	return name + "=" + url.QueryEscape(content)
}

// curlMethod sets the method that curl would use: POST if there is data.
func (d *draft) curlMethod(head, get bool) error {
	switch {
	case d.URL == "":
		return errors.New("the curl line has no address")
	case get:
		sep := "?"
		if strings.Contains(d.URL, "?") {
			sep = "&"
		}
		if d.Body != "" {
			d.URL, d.Body = d.URL+sep+d.Body, ""
		}
	}
	switch {
	case d.Method != "":
	case head:
		d.Method = http.MethodHead
	case d.Body != "":
		d.Method = http.MethodPost
	}
	if d.Body != "" && d.Header.Get("Content-Type") == "" {
		d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return nil
}

// escaped reads a text in $'…' as bash does, from after the first quote, and returns its length in
// the line. Browsers write data in this form if it contains a quote, a line break or non-ASCII
// letters.
func escaped(line string) (text string, n int, closed bool) {
	var b strings.Builder
	for rest := line; rest != ""; {
		if rest[0] == '\'' {
			return b.String(), len(line) - len(rest) + 1, true
		}
		r, wide, tail, err := strconv.UnquoteChar(rest, '\'')
		switch {
		case err != nil && strings.HasPrefix(rest, `\"`):
			b.WriteByte('"')
			rest = rest[2:]
		case err != nil: // not an escape
			b.WriteByte(rest[0])
			rest = rest[1:]
		case wide:
			b.WriteRune(r)
			rest = tail
		default:
			b.WriteByte(byte(r))
			rest = tail
		}
	}
	return "", 0, false
}

// shellWords splits a line as a shell would: quotes, backslashes, continued
// lines. Nothing is expanded.
func shellWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	var quote byte
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '\'':
			if c == '\'' {
				quote = 0
			} else {
				word.WriteByte(c)
			}
		case c == '\\' && i+1 < len(line):
			i++
			switch next := line[i]; {
			case next == '\n':
			case quote == '"' && !strings.ContainsRune("\"\\$`", rune(next)):
				word.WriteByte('\\')
				word.WriteByte(next)
			default:
				word.WriteByte(next)
				begun = true
			}
		case quote == '"':
			if c == '"' {
				quote = 0
			} else {
				word.WriteByte(c)
			}
		case c == '$' && strings.HasPrefix(line[i+1:], "'"):
			text, n, closed := escaped(line[i+2:])
			if !closed {
				return nil, errors.New("the curl line has a quote $' that is not closed")
			}
			word.WriteString(text)
			i, begun = i+1+n, true
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the curl line has a quote %c that is not closed", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
