package jwt

import (
	"errors"

	gojwt "github.com/golang-jwt/jwt/v5"
)

// Reason is why a token is not valid.
type Reason uint8

// The reasons. Valid means that there is none.
const (
	Valid        Reason = iota
	TooLong             // than MaxToken
	Malformed           // it is not a signed token, or its claims are not an object
	UnknownKey          // no key of its key id and algorithm is known
	BadSignature        // or an algorithm that is not accepted
	Expired
	NotYetValid // nbf or iat is ahead
	WrongIssuer
	WrongAudience
	Invalid // anything else, such as a date that cannot be read
	reasons
)

var reasonTexts = [reasons]string{
	"ok", "too_long", "malformed", "unknown_key", "bad_signature", "expired", "not_yet_valid", "wrong_issuer", "wrong_audience", "invalid",
}

// String returns a word for metrics.
func (r Reason) String() string { return reasonTexts[r] }

// Reasons returns all but Valid.
func Reasons() []Reason {
	var all []Reason
	for r := TooLong; r < reasons; r++ {
		all = append(all, r)
	}
	return all
}

var (
	errUnknownKey = errors.New("no key fits")
	errNotCompact = errors.New("the token is not three parts in base64url")
)

// reasonOf finds the reason in what verify said. The signature goes before dates: what is
// said of a token that nobody signed means nothing.
func reasonOf(err error) Reason {
	switch {
	case err == nil:
		return Valid
	case errors.Is(err, errUnknownKey):
		return UnknownKey
	case errors.Is(err, errNotCompact), errors.Is(err, errNoObject), errors.Is(err, gojwt.ErrTokenMalformed):
		return Malformed
	case errors.Is(err, gojwt.ErrTokenSignatureInvalid):
		return BadSignature
	case errors.Is(err, gojwt.ErrTokenExpired):
		return Expired
	case errors.Is(err, gojwt.ErrTokenNotValidYet), errors.Is(err, gojwt.ErrTokenUsedBeforeIssued):
		return NotYetValid
	case errors.Is(err, gojwt.ErrTokenInvalidIssuer):
		return WrongIssuer
	case errors.Is(err, gojwt.ErrTokenInvalidAudience):
		return WrongAudience
	}
	return Invalid
}
