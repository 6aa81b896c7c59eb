package lint

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// effort is what it takes a caller to make conditions hold by what it says.
type effort uint8

const (
	cannot effort = iota // they do not depend on what it says, or not on that alone
	secret               // it has to know a value that cannot be guessed
	guess                // it has to guess a value
	atWill               // nothing
)

// severity is how bad it is that something can be had for that.
func (e effort) severity() diag.Severity {
	if e == secret {
		return diag.Warning
	}
	return diag.Error
}

// guessable is how short a value is that is rather a word than a secret.
const guessable = 16

// claim is a way to make conditions hold by what the caller says, or leaves out.
type claim struct {
	effort
	name rulefile.Word // the condition that this is about
	deed string        // what the caller does, after "whoever"
}

// andSo ends a sentence about the claim.
func (c claim) andSo() string {
	switch c.effort {
	case guess:
		return ", which is easily guessed"
	case secret:
		return ", which is not a secret once it is in a file"
	}
	return ", and everybody can"
}

// claim finds how to make a when and an unless hold by what says reports to be the
// caller's own word, and by leaving out what it need not show.
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
	// An unless is walked around by another value, or by none.
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

// claimOne is what it takes to make c hold, and whether it takes a claim. What
// the request asks for, such as its method, takes nothing and is none.
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

// known is what the caller has to know to pass c.
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
			continue // nobody knows what is in the file
		}
		for _, t := range tests {
			if len(strings.ReplaceAll(t.Text, "*", "")) < guessable {
				least = guess
			}
		}
	}
	return least
}

// leaves reports whether a caller can do without a value of name.
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
