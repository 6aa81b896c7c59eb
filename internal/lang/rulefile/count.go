package rulefile

import (
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
)

const countHint = "write `count: { status: [401, 403] }`, with `4xx` or `500-599` for many"

// count reads which responses are charged; nil when all are.
func (d *decoder) count(o object) *Count {
	n := o.get("count")
	if n == nil {
		return nil
	}
	c := &Count{Pos: o.pos("count")}
	in, ok := d.open(n, &countPlace)
	if !ok {
		return c
	}
	status := d.need(in, "status", "`count`", countHint)
	if status == nil {
		return c
	}
	for _, item := range d.oneOrMore(status, "`status`", countHint) {
		text, ok := d.text(item, "a status", countHint)
		if !ok {
			continue
		}
		r, ok := parseStatus(text)
		if !ok {
			d.fail(item.Pos, diag.Quote(text)+" is not a status or a range of them, from 100 to 599", countHint)
			continue
		}
		c.Status = append(c.Status, r)
	}
	return c
}

// parseStatus reads 401, 4xx or 500-599.
func parseStatus(text string) (tidegate.StatusRange, bool) {
	if len(text) == 3 && strings.EqualFold(text[1:], "xx") && text[0] >= '1' && text[0] <= '5' {
		from := int(text[0]-'0') * 100
		return tidegate.StatusRange{From: from, To: from + 99}, true
	}
	low, high, dash := strings.Cut(text, "-")
	from, ok := oneStatus(strings.TrimSpace(low))
	if !dash {
		return tidegate.StatusRange{From: from, To: from}, ok
	}
	to, ok2 := oneStatus(strings.TrimSpace(high))
	return tidegate.StatusRange{From: from, To: to}, ok && ok2 && from <= to
}

// oneStatus reads three digits from 100 to 599.
func oneStatus(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && len(text) == 3 && n >= 100 && n <= 599
}
