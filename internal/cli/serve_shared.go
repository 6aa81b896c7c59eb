package cli

import (
	"fmt"
	"log/slog"
	"strings"

	"tidegate.dev/tidegate/internal/admin"
	"tidegate.dev/tidegate/internal/bounded"
	"tidegate.dev/tidegate/internal/chain/node"
	"tidegate.dev/tidegate/internal/chain/registry"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/diag"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/store/redis"
)

// shared is the store of a fleet, with all that stands before it on this node. There
// is one as long as the process, whatever is reloaded.
type shared struct {
	redis     *redis.Store
	node      *node.Node
	registry  *registry.Registry // nil means not joined yet
	instances func() int         // those that the rules name, 0 if they do not
	standing
}

// newShared connects to nothing: Redis may be down, and a successor may not take over.
func newShared(c config.Redis, instances func() int, m *telemetry.Metrics, log *slog.Logger) (*shared, error) {
	password, err := readSecret(c.PasswordFile, "the password of Redis")
	if err != nil {
		return nil, err
	}
	store, err := redis.Open(redis.Config{URL: c.URL, Username: c.Username, Password: password})
	if err != nil {
		return nil, err
	}
	s := &shared{redis: store, instances: instances}
	s.node = node.New(store, node.Options{
		Name: "Redis", Deadline: c.Deadline,
		OnState: s.turned, OnUnasked: s.unasked, Instances: s.size, OnCall: m.Calls(),
	})
	s.standing = standing{log: log, ask: s.node.Health, connection: store.Trouble}
	return s, nil
}

// maxSecret is how long a file with a password or token may be.
const maxSecret = 64 << 10

// readSecret reads what stands alone in a file; "" names none.
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

// minToken is the shortest token that is taken: 16 bytes at random cannot be guessed.
const minToken = 16

// readToken reads that of the admin listener; "" names none.
func readToken(file string) (string, error) {
	token, err := readSecret(file, "the token of the admin listener")
	if err == nil && token != "" && len(token) < minToken {
		return "", diag.List{{
			Pos: diag.Pos{File: file}, Severity: diag.Error,
			Message: fmt.Sprintf("the token of the admin listener has %d bytes, and takes at least %d to be hard to guess", len(token), minToken),
			Hint:    "make one with `openssl rand -hex 16`",
		}}
	}
	return token, err
}

// join is for when the process begins to serve.
func (s *shared) join() {
	s.registry = registry.Join(s.redis, registry.Options{OnBeat: s.beat})
}

// size is how many instances there are: as many as the rules say, if they do.
func (s *shared) size() int {
	if n := s.instances(); n > 0 {
		return n
	}
	return s.registry.Size()
}

// health is for /healthz.
func (s *shared) health() admin.Health {
	h := s.standing.health()
	h.Instances = s.size()
	return h
}

// stats are for /metrics.
func (s *shared) stats() telemetry.SharedStats {
	n := s.node.Health()
	unasked := make(map[string]int64, len(n.Unasked))
	for _, u := range n.Unasked {
		unasked[u.Rule] = u.Count
	}
	return telemetry.SharedStats{
		Unasked: unasked,
		State:   s.standing.health().Status, Instances: s.size(),
		Denied: uint64(n.Denied), Calls: uint64(n.Calls), Shared: uint64(n.Shared), InFlight: n.InFlight,
		Answered: n.Answered, Rejected: n.Rejected, Errors: n.Errors, Timeouts: n.Timeouts, Busy: n.Busy, Probes: n.Probes,
		Allowed: n.Allowed, Closed: n.Closed, Admitted: n.Admitted, Refused: n.Refused,
		Posted: n.Posted, Lost: n.Lost, Owed: n.Owed,
	}
}

func (s *shared) close() {
	if s.registry != nil {
		s.registry.Close()
	}
	s.node.Close()
	s.redis.Close()
}
