package rulefile

import (
	"mime"
	"regexp"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// placeholders are the words that are replaced in a body.
var placeholders = []string{"{rule}", "{limit}", "{remaining}", "{retry_after}"}

var looksLikePlaceholder = regexp.MustCompile(`\{[A-Za-z_]+\}`)

// respond reads how a refusal is answered; nil if n is not a map.
func (d *decoder) respond(n *yamltree.Node, pos diag.Pos) *Respond {
	in, ok := d.open(n, &respondPlace)
	if !ok {
		return nil
	}
	r := &Respond{Pos: pos}
	if n := in.get("status"); n != nil {
		r.Status = d.status(n)
	}
	if n := in.get("message"); n != nil {
		r.Message = d.message(n)
	}
	if n := in.get("body"); n != nil {
		r.Body = d.body(n)
	}
	if n := in.get("type"); n != nil {
		r.Type = d.mediaType(n)
	}
	switch {
	case in.has("message") && in.has("body"):
		d.fail(in.key("message"), "`message` is not seen where `body` replaces the whole answer", "write the sentence into `body`, or remove one of the two")
	case in.has("type") && !in.has("body"):
		d.fail(in.key("type"), "`type` is the type of `body`, which is not there", "write `body:` as well, or remove `type`")
	case len(in.fields) == 0 && len(in.meant) == 0:
		d.fail(in.at, "`respond` is empty", "write "+diag.Quote(respondPlace.example))
	}
	return r
}

func (d *decoder) message(n *yamltree.Node) string {
	text, _ := d.text(n, "`message`", "write a sentence for the client: `message: \"for subscribers only\"`")
	for _, p := range placeholders {
		if strings.Contains(text, p) {
			d.fail(n.Pos, "nothing is replaced in `message`, and "+diag.Quote(p)+" would be sent as it is", "write the whole answer as `body:`, where it is replaced")
		}
	}
	return text
}

// body keeps the text as it is, spaces included.
func (d *decoder) body(n *yamltree.Node) string {
	if _, ok := d.text(n, "`body`", "write the text of the answer, as in `body: \"slow down, {retry_after} s\"`"); !ok {
		return ""
	}
	for _, p := range looksLikePlaceholder.FindAllString(n.Value, -1) {
		if slices.Contains(placeholders, p) {
			continue
		}
		hint := "what is replaced are " + strings.Join(placeholders, ", ")
		if near := diag.Nearest(p, placeholders); near != "" {
			hint = "did you mean " + diag.Quote(near) + "?"
		}
		d.warn(n.Pos, diag.Quote(p)+" is sent as it is", hint)
	}
	return n.Value
}

func (d *decoder) mediaType(n *yamltree.Node) string {
	const hint = "write `type: application/json`"
	text, ok := d.text(n, "`type`", hint)
	if !ok {
		return ""
	}
	if media, _, err := mime.ParseMediaType(text); err != nil || !strings.Contains(media, "/") {
		d.fail(n.Pos, diag.Quote(text)+" is not a valid media type", hint)
		return ""
	}
	return text
}
