package rules

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/jwt"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// verified are the claims of the request's token, looked at once; one that is
// forged or expired has none, as if it had not been sent.
func (st *state) verified() jwt.Claims {
	if !st.claimsKnown {
		st.claimsKnown = true
		if token := st.token(); token != "" && st.set.verifier != nil {
			st.claims, _ = st.set.verifier.Claims(token)
		}
	}
	return st.claims
}

func (st *state) unverified() jwt.Claims {
	if !st.looseKnown {
		st.looseKnown = true
		if token := st.token(); token != "" {
			st.loose, _ = jwt.Unverified(token)
		}
	}
	return st.loose
}

// token is the bearer token, "" when there is none.
func (st *state) token() string {
	header, _ := st.request.Value("client header Authorization")
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}

// newVerifier reads the keys; without any, what is in tokens cannot be believed.
func (c *compiler) newVerifier() *jwt.Verifier {
	trust := c.config.Trust.JWT
	if trust == nil {
		return nil
	}
	v, err := jwt.New(jwt.Config{
		KeyFile: trust.Key, JWKSFile: trust.JWKS, Issuer: trust.Issuer, Audience: trust.Audience,
		Now: c.config.now, ReadFile: c.config.ReadFile,
	})
	if err != nil {
		c.problems.Add(diag.Problem{
			Pos: diag.Pos{File: c.file.Name}, Severity: diag.Error, Message: err.Error(),
			Hint: "the keys are named where trust is configured, not in the rule file",
		})
		return nil
	}
	for _, name := range []string{trust.Key, trust.JWKS} {
		if name != "" {
			c.files = append(c.files, name)
		}
	}
	return v
}

// warnUnverified tells of all that would come from there, named or not.
func (c *compiler) warnUnverified() {
	for _, id := range c.file.Identify {
		for _, s := range id.Sources {
			c.warnOf(s, "`"+id.Name.Text+"` is read from tokens, and no key is configured to verify them: it counts as missing")
		}
	}
	told := make(map[diag.Pos]bool)
	for _, s := range c.ids.unnamed {
		if !told[s.Pos] {
			c.warnOf(s, "`"+s.Text+"` is read from tokens, and no key is configured to verify them: it is never there")
		}
		told[s.Pos] = true
	}
}

func (c *compiler) warnOf(s rulefile.Source, message string) {
	if s.Kind == rulefile.SourceJWT {
		c.problems.Add(c.file.Problem(s.Pos, diag.Warning, message, "set trust.jwt, or Config.Trust.JWT in a program"))
	}
}
