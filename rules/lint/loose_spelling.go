package lint

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func looseSpelling(p *pass) {
	for _, r := range p.file.Rules {
		if r.Mode == rulefile.Disabled || r.Deny {
			continue
		}
		for _, per := range r.Per {
			if r.Finite(per.Text) != nil {
				continue
			}
			for _, s := range p.sources(per.Text) {
				guards := r.Count != nil || r.Block > 0
				isAccount := guards || s.Kind == rulefile.SourceBasicUser || namesAccount(s.Arg) || namesAccount(per.Text)
				if open := openSpelling(s); isAccount && open != 0 {
					p.warn(per.Pos, diag.Quote(r.Name.Text)+" counts per "+diag.Quote(per.Text)+", and every spelling of it has a counter of its own: `ANN`, `Ann ` and `ann` are one account to most servers",
						"write where it is found as "+diag.Quote((s.Spelling|open).String()+s.Place()))
					break
				}
			}
		}
	}
}

// openSpelling returns the ways to spell an account name from s alike that the source does not
// normalize yet.
func openSpelling(s rulefile.Source) rulefile.Spelling {
	switch s.Kind {
	case rulefile.SourceBody, rulefile.SourceQuery, rulefile.SourceBasicUser, rulefile.SourcePathWildcard:
		return (rulefile.Lower | rulefile.Trim) &^ s.Spelling
	}
	return 0
}

// namesAccount reports whether a field of that name probably holds an account name.
func namesAccount(field string) bool {
	last := field[strings.LastIndexByte(field, '.')+1:]
	return slices.Contains(accountWords, strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(last)))
}

var accountWords = []string{"account", "accountname", "email", "emailaddress", "mail", "login", "loginname", "user", "username", "handle", "nickname"}
