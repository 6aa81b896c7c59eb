package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TrustStats count identities that were missing and credentials that were rejected.
type TrustStats struct {
	Missing  []MissingIdentity
	Rejected []Rejected
	APIKeys  *APIKeysStats // nil if there is no file of them
	JWKS     *JWKSStats    // nil if there is no URL of them
}

// MissingIdentity counts the requests in which an identity was missing that rules asked for.
type MissingIdentity struct {
	Identity, Source string
	Requests         int64
}

// Rejected counts the tokens or API keys that were not accepted for a reason.
type Rejected struct {
	Kind, Reason string
	Requests     int64
}

// APIKeysStats describe the file of API keys.
type APIKeysStats struct {
	Keys, Reloads, Failed int
	Failing               bool // what is in the file is not in force
}

// JWKSStats describe the keys that were fetched from a URL.
type JWKSStats struct {
	Keys            int
	Fetched, Failed int64
	FetchedAt       time.Time // zero means not by this process
}

// WatchTrust exports the TrustStats.
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
