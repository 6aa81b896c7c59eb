package rules

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Bounds of a measure. Each node of a fleet keeps all measures.
const (
	maxMeasureID     = 32
	maxMeasureNames  = 8
	maxMeasureValue  = 256
	maxMeasureLimits = 8
	maxMeasureText   = 256 // of the reason, the message and who ordered it
)

// CheckMeasure checks a measure against these rules. The error is [MeasureProblems], with
// everything that is wrong. It changes nothing.
func (s *Set) CheckMeasure(m *Measure) error {
	c := newMeasureCompiler(s, nil)
	c.checkFields(m)
	c.order(m)
	if len(c.problems) == 0 {
		return nil
	}
	return MeasureProblems(c.problems)
}

// checkFields checks what does not depend on the rules.
func (c *measureCompiler) checkFields(m *Measure) {
	c.id = m.ID
	if m.ID == "" || len(m.ID) > maxMeasureID || strings.Trim(m.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		c.fail("id", diag.Quote(m.ID)+" cannot be the id of a measure", fmt.Sprintf("use up to %d letters a to z, digits and dashes", maxMeasureID))
	}
	if m.Ended(c.set.config.now()) {
		c.fail("until", m.Until.UTC().Format("2006-01-02T15:04:05Z07:00")+" is over", "write a later time, or leave it out")
	}
	if strings.TrimSpace(m.Reason) == "" {
		c.fail("reason", "a measure needs a reason", "write why, for whoever is on call next")
	}
	for field, text := range map[string]string{"reason": m.Reason, "message": m.Message, "by": m.By} {
		if len(text) > maxMeasureText {
			c.fail(field, fmt.Sprintf("it has %d bytes, and %d are allowed", len(text), maxMeasureText), "write less")
		}
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			c.fail(field, "it is not plain text in one line", "")
		}
	}
	if m.Message != "" && m.Kind != Ban {
		c.fail("message", "an override refuses nobody, so it has no message", "take it out")
	}
}
