package serve

import (
	"fmt"
	"log/slog"
	"strings"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/telemetry"
)

// shared is the store of a fleet, with all layers in front of it on this node. It lives as long as
// the process, across reloads.
type shared struct {
	*fleet.Store
	storeLog
}

// newShared returns the store without connecting: Redis may be down, and a successor may not take
// over. of describes this instance.
func newShared(c config.Redis, of fleet.Options, m *telemetry.Metrics, log *slog.Logger) (s *shared, err error) {
	s = &shared{storeLog: storeLog{log: log}}
	of.Shards, of.Was = shardsOf(c.Shards), shardsOf(c.Was)
	of.Region, of.Regions, of.OnRegion = c.Region, regionsOf(c.Regions), s.region
	of.Username, of.PasswordFile, of.Deadline, of.Name, of.JoinLater = c.Username, c.PasswordFile, c.Deadline, c.Instance, true
	of.OnState, of.OnUnasked, of.OnLostLease, of.OnEviction, of.OnClock = s.stateChanged, s.unasked, s.lostLease, s.evicts, s.clock
	of.OnCall, of.OnTake = m.Calls(), m.Taken
	s.Store, err = fleet.Open(c.URL, of)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func shardsOf(all []config.Shard) (shards []fleet.Shard) {
	for _, s := range all {
		shards = append(shards, fleet.Shard(s))
	}
	return shards
}

func regionsOf(all []config.Shard) (regions []fleet.Region) {
	for _, r := range all {
		regions = append(regions, fleet.Region(r))
	}
	return regions
}

// maxSecret is the maximum length of a file with a password or token.
const maxSecret = 64 << 10

// readSecret reads a secret from a file that contains nothing else; it returns "" if file is "".
func readSecret(file, what string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := bounded.ReadFile(file, maxSecret)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s is missing: %s is empty", what, file)
	}
	return secret, nil
}

// minToken is the minimum length of a token: 16 random bytes cannot be guessed.
const minToken = 16

// readToken reads the token of a listener; it returns "" if file is "".
func readToken(file, whose string) (string, error) {
	token, err := readSecret(file, "the token of "+whose)
	if err == nil && token != "" && len(token) < minToken {
		return "", diag.List{{
			Pos: diag.Pos{File: file}, Severity: diag.Error,
			Message: fmt.Sprintf("the token of %s has %d bytes, and needs at least %d to be hard to guess", whose, len(token), minToken),
			Hint:    "make one with `openssl rand -hex 16`",
		}}
	}
	return token, err
}

// health returns the health for /healthz.
func (s *shared) health() admin.Health {
	h := s.Health()
	is := admin.Health{Status: h.Status, Since: h.Since, Instances: h.Instances, Warnings: h.Warnings}
	if h.Clock.Known() {
		offset := h.Clock.Offset.Seconds()
		is.ClockOffset = &offset
	}
	if h.Why != nil {
		is.Why = h.Why.Error()
	}
	for _, m := range h.Servers {
		if m.Status != fleet.OK {
			is.Servers = append(is.Servers, admin.Server{Name: m.Name, Status: m.Status, Since: m.Since, Why: m.Why.Error()})
		}
	}
	for _, u := range h.Unasked {
		is.Unasked = append(is.Unasked, admin.Unasked{Rule: u.Rule, Why: u.Why.Error(), Since: u.Since})
	}
	return is
}

// stats returns the numbers for /metrics.
func (s *shared) stats() telemetry.SharedStats {
	n := s.Stats()
	unasked := make(map[string]int64)
	for _, u := range s.Unasked() {
		unasked[u.Rule] = u.Count
	}
	h := s.Health()
	servers := make(map[string]telemetry.ServerStats)
	for _, m := range h.Servers {
		servers[m.Name] = telemetry.ServerStats{State: m.Status, Backlog: m.Backlog}
	}
	var clock *float64
	if h.Clock.Known() {
		offset := h.Clock.Offset.Seconds()
		clock = &offset
	}
	regions := make([]telemetry.RegionStats, 0, len(h.Regions))
	for _, r := range h.Regions {
		regions = append(regions, telemetry.RegionStats{Region: r.Name, Lag: r.Lag.Seconds(), CutOff: r.CutOff})
	}
	return telemetry.SharedStats{
		ClockOffset: clock, Regions: regions,
		Unasked: unasked, Servers: servers,
		State: h.Status, Instances: s.Instances(),
		Denied: uint64(n.Denied), Calls: uint64(n.Calls), Shared: uint64(n.Shared), InFlight: n.InFlight,
		Answered: n.Answered, Rejected: n.Rejected, Errors: n.Errors, Timeouts: n.Timeouts, Busy: n.Busy, Probes: n.Probes,
		Allowed: n.Allowed, Closed: n.Closed, Admitted: n.Admitted, Refused: n.Refused,
		Posted: n.Posted, Lost: n.Lost, Backlog: n.Backlog, LeasesLost: n.LeasesLost, Evicted: s.Evicted(),
		Leases: int64(h.Leases), LeasedEvents: h.LeasedEvents, EventualLag: h.Lag.Seconds(), Usage: s.usage(),
	}
}

// usage returns what the servers have recently reported about themselves.
func (s *shared) usage() (all []telemetry.ServerUsage) {
	for _, m := range s.Servers() {
		all = append(all, telemetry.ServerUsage{
			Server: m.Server, CPU: m.CPU.Seconds(), Memory: m.Used, MaxMemory: m.Max, Evicted: m.Evicted,
			Clients: m.Clients, MaxClients: m.MaxClients, Keys: m.Keys,
		})
	}
	return all
}
