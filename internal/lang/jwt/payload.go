package jwt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"

	"tidegate.dev/tidegate/internal/lang/jsonvalue"
)

var errNoObject = errors.New("the claims are not a JSON object")

// payload is the claims as the library asks for them. It keeps the text instead
// of a map: that is what the cache holds, and names are matched exactly, which a
// struct would not.
type payload struct{ object jsonvalue.Value }

var _ gojwt.Claims = (*payload)(nil)

// UnmarshalJSON is given valid JSON without space around it.
func (p *payload) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return errNoObject
	}
	p.object = jsonvalue.Value(text)
	return nil
}

func (p *payload) GetExpirationTime() (*gojwt.NumericDate, error) { return p.date("exp") }
func (p *payload) GetNotBefore() (*gojwt.NumericDate, error)      { return p.date("nbf") }
func (p *payload) GetIssuedAt() (*gojwt.NumericDate, error)       { return p.date("iat") }
func (p *payload) GetIssuer() (string, error)                     { return p.text("iss") }
func (p *payload) GetSubject() (string, error)                    { return p.text("sub") }

func (p *payload) GetAudience() (audience gojwt.ClaimStrings, err error) {
	if v := p.object.Member("aud"); v != "" {
		err = json.Unmarshal([]byte(v), &audience)
	}
	return audience, err
}

func (p *payload) text(name string) (s string, err error) {
	if v := p.object.Member(name); v != "" {
		err = json.Unmarshal([]byte(v), &s)
	}
	return s, err
}

// date refuses what is there and is not a valid date: a token with an expiry that cannot
// be read must not be one without.
func (p *payload) date(name string) (*gojwt.NumericDate, error) {
	v := p.object.Member(name)
	if v == "" {
		return nil, nil
	}
	const most = 1 << 53 // beyond it, seconds are not exact and may overflow
	seconds, err := strconv.ParseFloat(string(v), 64)
	if err != nil || seconds > most || seconds < -most {
		return nil, fmt.Errorf("the claim %s is not a date in seconds", name)
	}
	return gojwt.NewNumericDate(time.Unix(int64(seconds), 0)), nil
}

// until returns until when it may be remembered that p is valid.
func (p *payload) until(now time.Time) time.Time {
	until := now.Add(maxAge)
	if exp, err := p.date("exp"); err == nil && exp != nil && exp.Add(leeway).Before(until) {
		until = exp.Add(leeway)
	}
	return until
}
