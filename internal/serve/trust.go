package serve

import "tidegate.dev/tidegate/internal/telemetry"

// trust returns the counts of rejected and missing credentials, and the state of the API keys and of
// the keys that verify tokens, for metrics.
func (r *ruleSource) trust() (t telemetry.TrustStats) {
	set := r.live.Set()
	for _, m := range set.MissingIdentities() {
		t.Missing = append(t.Missing, telemetry.MissingIdentity(m))
	}
	for _, x := range set.Rejected() {
		t.Rejected = append(t.Rejected, telemetry.Rejected(x))
	}
	st := r.Status()
	if k := st.APIKeys; k != nil {
		t.APIKeys = &telemetry.APIKeysStats{Keys: k.Keys, Reloads: k.Reloads, Failed: k.Failed, Failing: k.LastError != ""}
	}
	if j := st.JWKS; j != nil {
		t.JWKS = &telemetry.JWKSStats{Keys: j.Keys, Fetched: j.Fetched, Failed: j.Failed, FetchedAt: j.FetchedAt}
	}
	return t
}
