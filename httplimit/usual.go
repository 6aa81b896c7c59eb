package httplimit

import (
	"net/http"
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
)

// usualProblem is the problem+json body of most refusals by a policy: its quota is used up, or its
// slots are taken. Only the seconds and the slip differ, so the rest is prepared.
type usualProblem struct {
	status     int    // 0 if the policy has no such body
	head, tail string // before the seconds, and after them up to the slip
}

func (p *policy) usualProblem() usualProblem {
	if p.sheds || p.denies || p.answer.Message != "" {
		return usualProblem{}
	}
	why := problem{Type: quotaExceeded, Title: quotaTitle, Status: status(p.answer, http.StatusTooManyRequests), Detail: p.usedUp() + tryAgain}
	return usualProblem{
		status: why.Status,
		head:   strings.TrimSuffix(string(why.appendJSON(nil)), `"}`),
		tail:   againEnd + `","violated-policies":[` + string(appendString(nil, p.name)) + `]`,
	}
}

// isUsual reports whether a refusal with that status has the usual body.
func (p *policy) isUsual(d *tidegate.Decision, status int) bool {
	return p != nil && p.usual.status == status && d.Err == nil && !d.Never
}

// appendJSON appends what explain and problem.appendJSON would.
func (u *usualProblem) appendJSON(b []byte, retry int64, slip string) []byte {
	b = strconv.AppendInt(append(b, u.head...), retry, 10)
	return endJSON(append(b, u.tail...), slip)
}
