package checkapi

import (
	"strconv"
	"time"
	"unicode/utf8"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
)

// decisionHeader has the verdict in one word, for proxies that only support some statuses.
const decisionHeader = "X-Tidegate-Decision"

// verdict is the result for a request, the worst last.
type verdict uint8

const (
	undecided verdict = iota
	allowed
	limited
	denied
)

// verdictHeaders are the values of the header.
var verdictHeaders = [...][]string{allowed: {"allowed"}, limited: {"limited"}, denied: {"denied"}}

// verdictOf returns the result for a request. A refusal without a limit was made before the rules
// were asked.
func verdictOf(d *tidegate.Decision) verdict {
	switch {
	case d.OK:
		return allowed
	case d.Limit == nil && d.Err == nil, desk.Word(d) == verdictHeaders[denied][0]:
		return denied
	}
	return limited
}

// appendAnswer appends an object without its closing brace.
func appendAnswer(b []byte, a *desk.Answer, result verdict, reason string) []byte {
	d := &a.Decision
	b = append(b, `{"decision":"`...)
	b = append(b, verdictHeaders[result][0]...)
	b = append(b, '"')
	rule, limit, remaining, ok := desk.Told(d)
	if rule != "" {
		b = append(b, `,"rule":`...)
		b = appendString(b, rule)
	}
	if ok {
		b = append(b, `,"limit":`...)
		b = strconv.AppendInt(b, limit, 10)
		b = append(b, `,"remaining":`...)
		b = strconv.AppendInt(b, remaining, 10)
	}
	if !d.OK && !d.Never {
		b = append(b, `,"retry_after":`...)
		b = appendSeconds(b, d.RetryAfter)
	}
	if d.Limit != nil && d.Err == nil && d.Limit.Algorithm != tidegate.Deny && d.Limit.Algorithm != tidegate.Concurrency {
		b = append(b, `,"reset_after":`...)
		b = appendSeconds(b, d.ResetAfter)
	}
	if a.Ticket != "" {
		b = append(b, `,"ticket":`...)
		b = appendString(b, a.Ticket)
	}
	if a.Slip != "" {
		b = append(b, `,"slip":`...)
		b = appendString(b, a.Slip)
	}
	if d.Soft {
		b = append(b, `,"soft":true`...)
	}
	if d.Never && result == limited {
		b = append(b, `,"never":true`...)
	}
	if d.Err != nil {
		b = append(b, `,"fallback":true`...)
	}
	if reason != "" {
		b = append(b, `,"reason":`...)
		b = appendString(b, reason)
	}
	return b
}

// appendSeconds appends a duration in seconds, exactly.
func appendSeconds(b []byte, d time.Duration) []byte {
	d = max(d, 0)
	b = strconv.AppendInt(b, int64(d/time.Second), 10)
	rest := int64(d % time.Second)
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	for digit := int64(time.Second / 10); rest > 0; digit /= 10 {
		b = append(b, byte('0'+rest/digit))
		rest %= digit
	}
	return b
}

// appendString appends a string as JSON; invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
