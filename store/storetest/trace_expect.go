package storetest

import (
	"fmt"
	"strconv"
	"time"

	"tidegate.dev/tidegate"
)

func parseExpectation(words []string, limits map[string]*tidegate.Limit) (expectation, error) {
	var e expectation
	if len(words)%2 != 1 {
		return e, fmt.Errorf("expected %q: want a verdict and then pairs such as %q", words, "remaining 3")
	}
	e.verdict = words[0]
	switch e.verdict {
	case "ok", "no", "never", "lost", "settled":
	default:
		return e, fmt.Errorf("verdict %q: want ok, no, never, lost or settled", e.verdict)
	}
	for i := 1; i < len(words); i += 2 {
		name, value := words[i], words[i+1]
		var err error
		switch name {
		case "remaining":
			e.remaining, err = parseCount(value)
		case "granted":
			e.granted, err = parseCount(value)
		case "retry":
			e.retry, err = parseSpan(value)
		case "reset":
			e.reset, err = parseSpan(value)
		case "wait":
			e.wait, err = time.ParseDuration(value)
		case "by":
			if e.by = limits[value]; e.by == nil {
				err = fmt.Errorf("no limit is called %q", value)
			}
		default:
			err = fmt.Errorf("want remaining, granted, retry, reset, wait or by")
		}
		if err != nil {
			return e, fmt.Errorf("expected %s %s: %w", name, value, err)
		}
	}
	return e, nil
}

func parseCount(s string) (*int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	return &n, err
}

func parseSpan(s string) (*time.Duration, error) {
	d, err := time.ParseDuration(s)
	return &d, err
}

// compare returns in what a decision differs from what was expected. The numbers
// are compared only if they are those of the last of several requests.
func (e *expectation) compare(d tidegate.Decision, last bool) error {
	verdict := "no"
	switch {
	case d.OK:
		verdict = "ok"
	case d.Never:
		verdict = "never"
	}
	differ := func(what string, want any) error {
		return fmt.Errorf("expected %s %v, got: %s", what, want, show(d))
	}
	switch {
	case verdict != e.verdict:
		return fmt.Errorf("expected %s, got: %s", e.verdict, show(d))
	case !last:
		return nil
	case e.remaining != nil && *e.remaining != d.Remaining:
		return differ("remaining", *e.remaining)
	case e.granted != nil && *e.granted != d.Granted:
		return differ("granted", *e.granted)
	case e.retry != nil && *e.retry != d.RetryAfter:
		return differ("retry", *e.retry)
	case e.reset != nil && *e.reset != d.ResetAfter:
		return differ("reset", *e.reset)
	case e.wait != d.Wait:
		return differ("wait", e.wait)
	case e.by != nil && e.by != d.Limit:
		return differ("it to be by", e.by)
	}
	return nil
}
