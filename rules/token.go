package rules

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/jwt"
)

// verified returns the claims of the request's token, which is verified once. A forged or expired
// token has no claims, as if it had not been sent.
func (st *state) verified() jwt.Claims {
	if !st.claimsKnown {
		st.claimsKnown = true
		if token := st.token(); token != "" && st.set.verifier != nil && !st.isKey() {
			var reason jwt.Reason
			if st.claims, reason = st.set.verifier.Verify(token); reason != jwt.Valid && !st.explains {
				st.set.config.Trust.JWT.rejected[reason].Add(1)
			}
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

// isKey reports whether the bearer token is a known API key.
func (st *state) isKey() bool {
	return st.set.keys != nil && st.set.keys.from.Bearer && st.apiKey("") != ""
}

// token returns the bearer token; "" if there is none.
func (st *state) token() string {
	header, _ := st.request.Value("client header Authorization")
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}

// newVerifier reads the keys for tokens; nil means that no token is believed.
func (c *compiler) newVerifier() *jwt.Verifier {
	trust := c.config.Trust.JWT
	if trust == nil {
		return nil
	}
	v, err := trust.newVerifier(&c.config)
	if err != nil {
		c.problems.Add(diag.Problem{
			Pos: diag.Pos{File: c.file.Name}, Severity: diag.Error, Message: err.Error(),
			Hint: "the keys are named where trust is configured, not in the rule file",
		})
		return nil
	}
	for _, name := range []string{trust.Key, trust.JWKS} {
		if name != "" && !jwt.IsURL(name) {
			c.files = append(c.files, name)
		}
	}
	c.warnNoKeys(v)
	return v
}
