package rules

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/jwt"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// warnUntrusted warns about everything that rules read from tokens and keys, named or not, and that
// is always missing with the configured trust.
func (c *compiler) warnUntrusted(keys *keySource) {
	told := make(map[diag.Pos]bool)
	warn := func(name string, s rulefile.Source, then string) {
		if told[s.Pos] {
			return
		}
		told[s.Pos] = true
		why, hint := c.untrusted(s, keys)
		if why != "" {
			c.problems.Add(c.file.Problem(s.Pos, diag.Warning, "`"+name+"` "+why+": "+then, hint))
		}
	}
	for _, id := range c.file.Identify {
		for _, s := range id.Sources {
			warn(id.Name.Text, s, "it counts as missing")
		}
	}
	for _, s := range c.ids.unnamed {
		warn(s.Text, s, "it is never there")
	}
}

// untrusted returns why s never has a value; "" if it may have one.
func (c *compiler) untrusted(s rulefile.Source, keys *keySource) (why, hint string) {
	trust := &c.config.Trust
	switch {
	case s.Kind == rulefile.SourceJWT && trust.JWT == nil:
		return "is read from tokens, and no key is configured to verify them", "set trust.jwt, or Config.Trust.JWT in a program"
	case s.Kind == rulefile.SourceAPIKey && trust.APIKeys == nil:
		return "is read from API keys, and no file of keys is configured", "set trust.api_keys, or Config.Trust.APIKeys in a program"
	case s.Kind == rulefile.SourceAPIKey && s.Arg != "" && keys != nil && !keys.table.Load().Has(s.Arg):
		return "is read from API keys, and " + keys.File + " has no column " + diag.Quote(s.Arg), keys.columnsHint()
	}
	return "", ""
}

// warnNoKeys warns that the keys of a URL have not been fetched yet.
func (c *compiler) warnNoKeys(v *jwt.Verifier) {
	if s, ok := v.Status(); ok && s.Never && s.Err != nil {
		c.problems.Add(diag.Problem{
			Pos: diag.Pos{File: c.file.Name}, Severity: diag.Warning,
			Message: "there are no keys to verify tokens with, so that what is read from tokens counts as missing: " + s.Err.Error(),
			Hint:    "they are fetched again; trust.jwt.copy keeps the last good ones across a restart",
		})
	}
}
