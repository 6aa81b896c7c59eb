package xds

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// page is a resource as the text of a rule file, so that whatever is wrong with it is shown
// by the same messages, with a line and a caret.
type page struct {
	file     string
	text     strings.Builder
	line     int // that is being written
	problems diag.List
}

// write returns the text of c, and a problem for each message in it with fields that this version
// does not know.
func write(file string, c *ratelimit.RateLimitConfig) ([]byte, diag.List) {
	p := &page{file: file}
	p.begin(0)
	p.field("domain", quoted(c.GetDomain()))
	p.unknown(c, "a configuration")
	if len(c.GetDescriptors()) > 0 {
		p.begin(0)
		p.text.WriteString("descriptors:")
		p.descriptors(c.GetDescriptors(), 0)
	}
	p.text.WriteByte('\n')
	text := []byte(p.text.String())
	lines := diag.SplitLines(text)
	for i := range p.problems {
		p.problems[i].Source = lines.At(p.problems[i].Line)
	}
	return text, p.problems
}

// begin begins a line.
func (p *page) begin(indent int) {
	if p.line++; p.line > 1 {
		p.text.WriteByte('\n')
	}
	for range indent {
		p.text.WriteString("  ")
	}
}

func (p *page) field(name, value string) { p.text.WriteString(name + ": " + value) }

// full reports whether the text is longer than the reader of rules accepts.
func (p *page) full() bool { return p.text.Len() > yamltree.MaxSize }

func (p *page) descriptors(all []*ratelimit.RateLimitDescriptor, indent int) {
	for _, d := range all {
		if p.full() {
			return
		}
		p.begin(indent)
		p.text.WriteString("- ")
		p.field("key", quoted(d.GetKey()))
		p.unknown(d, "a descriptor")
		if d.GetValue() != "" {
			p.begin(indent + 1)
			p.field("value", quoted(d.GetValue()))
		}
		if d.GetRateLimit() != nil {
			p.begin(indent + 1)
			p.text.WriteString("rate_limit:")
			p.policy(d.GetRateLimit(), indent+2)
		}
		p.flag("shadow_mode", d.GetShadowMode(), indent+1)
		p.flag("detailed_metric", d.GetDetailedMetric(), indent+1)
		if len(d.GetDescriptors()) > 0 {
			p.begin(indent + 1)
			p.text.WriteString("descriptors:")
			p.descriptors(d.GetDescriptors(), indent+1)
		}
	}
}

func (p *page) policy(r *ratelimit.RateLimitPolicy, indent int) {
	p.unknown(r, "a rate limit")
	p.flag("unlimited", r.GetUnlimited(), indent)
	if !r.GetUnlimited() || r.GetUnit() != ratelimit.RateLimitUnit_UNKNOWN {
		p.begin(indent)
		p.field("unit", unit(r.GetUnit()))
	}
	if !r.GetUnlimited() || r.GetRequestsPerUnit() > 0 {
		p.begin(indent)
		p.field("requests_per_unit", strconv.FormatUint(uint64(r.GetRequestsPerUnit()), 10))
	}
	if r.GetName() != "" {
		p.begin(indent)
		p.field("name", quoted(r.GetName()))
	}
	if len(r.GetReplaces()) == 0 {
		return
	}
	p.begin(indent)
	p.text.WriteString("replaces:")
	for _, other := range r.GetReplaces() {
		p.begin(indent)
		p.text.WriteString("- ")
		p.field("name", quoted(other.GetName()))
		p.unknown(other, "`replaces`")
	}
}

func (p *page) flag(name string, on bool, indent int) {
	if on {
		p.begin(indent)
		p.field(name, "true")
	}
}

// unit returns the word for u in a rule file; a number without a word stays a number, which the
// reader of rules refuses.
func unit(u ratelimit.RateLimitUnit) string {
	if name, ok := ratelimit.RateLimitUnit_name[int32(u)]; ok {
		return strings.ToLower(name)
	}
	return strconv.Itoa(int(u))
}

// unknown reports fields that the server knows and this version does not: a limit without
// them might mean something else.
func (p *page) unknown(m proto.Message, what string) {
	b := m.ProtoReflect().GetUnknown()
	if len(b) == 0 {
		return
	}
	number, _, _ := protowire.ConsumeTag(b)
	// The last line, from its first character that is not a blank or a dash.
	text := p.text.String()
	text = text[strings.LastIndexByte(text, '\n')+1:]
	at := len(text) - len(strings.TrimLeft(text, " -"))
	p.problems.Add(diag.Problem{
		Pos:     diag.Pos{File: p.file, Line: p.line, Col: at + 1, Len: max(utf8.RuneCountInString(text[at:]), 1)},
		Message: fmt.Sprintf("%s here has field number %d, which this version of Tidegate does not know", what, number),
		Hint:    "upgrade Tidegate, or have the control plane leave it out",
	})
}

// quoted returns text as a YAML scalar, without quotes if it needs none.
func quoted(text string) string {
	if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" {
		return text
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == utf8.RuneError || unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
