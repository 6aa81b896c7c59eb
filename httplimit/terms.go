package httplimit

import (
	"encoding/json"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// terms is what headers and refusals need from the Terms of a limit.
type terms struct {
	rule     string
	answer   tidegate.Answer
	denies   bool            // an access rule
	sheds    bool            // an access rule that sheds load
	silent   bool            // there are no numbers to show
	written  headerStyle     // how the Answer of the rule wants headers written
	ownStyle bool            // written has a dialect or a reset
	ownReset bool            // written has a reset
	jitter   float64         // of the answer; 0 leaves it to the options
	window   time.Duration   // aligned to the clock, at whose end all clients come back; 0 if it has none
	nominal  *tidegate.Limit // that clients are told instead; nil means the limit itself
	above    int64           // by how much the limit's own capacity is above that of nominal
	blocks   bool            // it is a block, of which nothing remains
}

func termsOf(l *tidegate.Limit) terms {
	t := terms{rule: l.Name, denies: l.Algorithm == tidegate.Deny, sheds: l.Sheds(), window: alignedWindow(l)}
	t.silent = t.denies
	cached := l.Terms
	if cached == nil {
		return t
	}
	if cached.Rule != "" {
		t.rule = cached.Rule
	}
	t.answer = cached.Answer
	t.jitter = t.answer.RetryJitter
	for _, word := range t.answer.Dialects {
		t.written.dialect |= dialects[word]
	}
	t.written.reset, t.ownReset = resets[t.answer.Reset]
	t.ownStyle = t.written.dialect.valid() || t.ownReset
	if t.nominal = cached.Answer.Nominal; t.nominal != nil {
		t.above = l.Capacity() - t.nominal.Capacity()
	}
	if cached.Role == tidegate.Blocks {
		t.blocks = true
		t.window = 0                // it begins with a refusal
		t.silent = t.nominal == nil // its numbers are not those of the rule
	}
	return t
}

var (
	dialects = map[string]Dialect{"draft11": Draft11, "draft6": Draft6, "x": X, "none": NoHeaders}
	resets   = map[string]Reset{"delta": ResetDelta, "epoch": ResetEpoch}
)

// style returns f with the changes that the Answer of the rule asks for.
func (t *terms) style(f headerStyle) headerStyle {
	if !t.ownStyle {
		return f
	}
	if t.written.dialect.valid() {
		f.dialect = t.written.dialect
	}
	if t.ownReset {
		f.reset = t.written.reset
	}
	return f
}

// left returns what remains of the limit that clients are told about.
func (t *terms) left(d *tidegate.Decision) int64 {
	if t.blocks {
		return 0
	}
	return max(d.Remaining-t.above, 0)
}

// status returns the status of the answer, or other if it has none that can be sent.
func status(a tidegate.Answer, other int) int {
	if a.Status >= http.StatusOK && a.Status <= 599 {
		return a.Status
	}
	return other
}

// body returns the body of the rule's Answer, with its placeholders filled in, and its type.
func (p *policy) body(d *tidegate.Decision, retry int64) (body, kind string) {
	kind = p.answer.ContentType
	if kind == "" || printable(kind) != kind {
		kind = "text/plain; charset=utf-8"
	}
	return fill(p.answer.Body, func(name string) (string, bool) {
		switch name {
		case "rule":
			return escape(p.rule, kind), true
		case "limit":
			return p.capacity, true
		case "remaining":
			return strconv.FormatInt(p.left(d), 10), true
		case "retry_after":
			return strconv.FormatInt(retry, 10), true
		}
		return "", false
	}), kind
}

// escape makes a name fit for a text of that type.
func escape(name, kind string) string {
	switch {
	case strings.Contains(kind, "json"):
		quoted, _ := json.Marshal(name) // a string: this cannot fail
		return string(quoted[1 : len(quoted)-1])
	case strings.Contains(kind, "html"):
		return html.EscapeString(name)
	}
	return name
}

// fill replaces each {name} by its value. It does not replace anything inside of values, and
// leaves braces around anything else as they are.
func fill(text string, value func(name string) (string, bool)) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if v, ok := value(name); ok && closed {
			b.WriteString(v)
			text = after
		} else {
			b.WriteByte('{')
			text = rest
		}
	}
}
