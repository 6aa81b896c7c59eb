package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TrustStats is what became of those who said who they are.
type TrustStats struct {
	Missing  []MissingIdentity
	Rejected []Rejected
	APIKeys  *APIKeysStats // nil if there is no file of them
	JWKS     *JWKSStats    // nil if there is no URL of them
}

// MissingIdentity is how often rules asked for an identity that was not there.
type MissingIdentity struct {
	Identity, Source string
	Requests         int64
}

// Rejected is how often a token or an API key was not accepted.
type Rejected struct {
	Kind, Reason string
	Requests     int64
}

// APIKeysStats is how the file of API keys is.
type APIKeysStats struct {
	Keys, Reloads, Failed int
	Failing               bool // what is in the file is not in force
}

// JWKSStats is how the keys of a URL are.
type JWKSStats struct {
	Keys            int
	Fetched, Failed int64
	FetchedAt       time.Time // zero means not by this process
}

// WatchTrust shows what became of those who said who they are.
func (m *Metrics) WatchTrust(stats func() TrustStats) { m.watched.trust.Store(&stats) }

var (
	missingDesc     = describe("tidegate_identity_missing_total", "Requests that a rule asked for an identity, and that had none, by the identity and where it was looked for.", "identity", "source")
	rejectedDesc    = describe("tidegate_credentials_rejected_total", "Tokens and API keys that rules asked for and that counted as missing, by why they were not accepted.", "kind", "reason")
	keysInForceDesc = describe("tidegate_api_keys", "API keys in force.")
	keysCurrentDesc = describe("tidegate_api_keys_current", "Whether the API keys in force are those in the file; 0: the last reload failed.")
	keysReloadsDesc = describe("tidegate_api_keys_reloads_total", "Reloads of the API keys after the first load, by outcome.", "outcome")
	jwksKeysDesc    = describe("tidegate_jwks_keys", "Keys of the URL that verify tokens; 0: no token holds.")
	jwksFetchesDesc = describe("tidegate_jwks_fetches_total", "Fetches of the keys of the URL, by outcome.", "outcome")
	jwksFetchedDesc = describe("tidegate_jwks_fetched_timestamp_seconds", "When the URL last had the keys in use; absent if they are of the copy.")

	trustDescs = []*prometheus.Desc{
		missingDesc, rejectedDesc, keysInForceDesc, keysCurrentDesc, keysReloadsDesc, jwksKeysDesc, jwksFetchesDesc, jwksFetchedDesc,
	}
)

func (s *TrustStats) collect(emit emit) {
	for _, m := range s.Missing {
		emit(missingDesc, counter, float64(m.Requests), m.Identity, m.Source)
	}
	for _, r := range s.Rejected {
		emit(rejectedDesc, counter, float64(r.Requests), r.Kind, r.Reason)
	}
	if k := s.APIKeys; k != nil {
		emit(keysInForceDesc, gauge, float64(k.Keys))
		emit(keysCurrentDesc, gauge, number(!k.Failing))
		emit(keysReloadsDesc, counter, float64(k.Reloads), "ok")
		emit(keysReloadsDesc, counter, float64(k.Failed), "failed")
	}
	if j := s.JWKS; j != nil {
		emit(jwksKeysDesc, gauge, float64(j.Keys))
		emit(jwksFetchesDesc, counter, float64(j.Fetched), "ok")
		emit(jwksFetchesDesc, counter, float64(j.Failed), "failed")
		if !j.FetchedAt.IsZero() {
			emit(jwksFetchedDesc, gauge, float64(j.FetchedAt.UnixMilli())/1000)
		}
	}
}
