package lint

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// effort is what it takes a caller to make conditions hold by its own claims.
type effort uint8

const (
	cannot effort = iota // they do not depend on what it says, or not on that alone
	secret               // it has to know a value that cannot be guessed
	guess                // it has to guess a value
	atWill               // nothing
)

// severity returns how bad it is if a caller gets something with that effort.
func (e effort) severity() diag.Severity {
	if e == secret {
		return diag.Warning
	}
	return diag.Error
}

// guessable is the length below which a value is more likely a word than a secret.
const guessable = 16

// claim is a way to make conditions hold by what the caller says, or leaves out.
type claim struct {
	effort
	name rulefile.Word // the condition that this is about
	deed string        // what the caller does, after "whoever"
}

// andSo returns the end of a sentence about the claim.
func (c claim) andSo() string {
	switch c.effort {
	case guess:
		return ", which is easily guessed"
	case secret:
		return ", which is not a secret once it is in a file"
	}
	return ", and everybody can"
}

// claim returns how a caller can make a when and an unless hold: with values from sources for which
// says is true, and by omitting what it need not send.
func (p *pass) claim(g whenUnless, says func(rulefile.Source) bool) claim {
	made := claim{effort: atWill}
	for i := range g.when {
		c := &g.when[i]
		needs, is := p.claimOne(c, says)
		if needs == cannot {
			return claim{}
		}
		if is && (made.deed == "" || needs < made.effort) {
			made.name = c.Name
			switch {
			case wantsAbsent(c):
				made.deed = "leaves out " + diag.Quote(c.Name.Text)
			case needs == atWill:
				made.deed = "sends any " + diag.Quote(c.Name.Text)
			default:
				made.deed = "sends the right " + diag.Quote(c.Name.Text)
			}
		}
		made.effort = min(made.effort, needs)
	}
	// An unless is avoided with another value, or with none.
	for i := range g.unless {
		if c := &g.unless[i]; made.deed == "" && !wantsAbsent(c) && p.leaves(c.Name.Text, says) {
			made.name, made.deed = c.Name, "leaves out "+diag.Quote(c.Name.Text)
		}
	}
	if made.deed == "" {
		return claim{}
	}
	return made
}

// claimOne returns what it takes to make c hold, and whether it takes a claim. What the request
// asks for, such as its method, takes no effort and is not a claim.
func (p *pass) claimOne(c *rulefile.Condition, says func(rulefile.Source) bool) (effort, bool) {
	if wantsAbsent(c) && p.leaves(c.Name.Text, says) {
		return atWill, true
	}
	asked := false
	for _, s := range p.sources(c.Name.Text) {
		if says(s) {
			return p.known(c), true
		}
		switch controlOf(s, &route{}) {
		case claimed, chosen:
			asked = true
		}
	}
	if asked {
		return atWill, false
	}
	return cannot, false
}

// known returns how hard it is to know a value that passes c.
func (p *pass) known(c *rulefile.Condition) effort {
	least := secret
	for _, t := range c.Any {
		if t.Kind == rulefile.TestPresent {
			return atWill
		}
		tests := []rulefile.Test{t}
		if listed, ok := p.listed(t); ok {
			tests = listed
		} else if t.Kind == rulefile.TestIn {
			continue // the file may change
		}
		for _, t := range tests {
			if len(strings.ReplaceAll(t.Text, "*", "")) < guessable {
				least = guess
			}
		}
	}
	return least
}

// leaves reports whether a caller can omit the value of name.
func (p *pass) leaves(name string, says func(rulefile.Source) bool) bool {
	return all(p.sources(name), func(s rulefile.Source) bool {
		return says(s) || proof(s)
	})
}

func wantsAbsent(c *rulefile.Condition) bool {
	for _, t := range c.Any {
		if t.Kind == rulefile.TestAbsent {
			return true
		}
	}
	return false
}
