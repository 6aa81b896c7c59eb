package chain

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
)

// Scripts runs Lua scripts of other packages on the servers of a Shared.
type Scripts interface {
	// Run runs a script on the server that has the keys, which must all be in one slot, and
	// returns its results as texts. After an error it is not known whether the script ran.
	Run(ctx context.Context, what string, s *Script, keys []string, args ...string) ([]string, error)
	// Home returns the name of the server that has a key, as far as is known.
	Home(key string) string
	// Prefix returns what all keys begin with.
	Prefix() string
	// Durability asks every server how it keeps what is written. It fails if one does not answer.
	Durability(ctx context.Context) ([]Durability, error)
}

// Script is a Lua script that returns a list of texts and numbers, up to 1 MiB together. KEYS has
// its keys, and ARGV its arguments from ARGV[2] on; ARGV[1] is reserved for the store.
type Script struct{ Text, SHA string }

// NewScript wraps body, whose results the script returns together with a checksum.
func NewScript(body string) *Script {
	text := "local function run()\n" + body + `
end
local all, reply = run(), { ARGV[1] }
for i = 1, #all do
  local text = tostring(all[i])
  if type(all[i]) == 'number' then text = string.format('%.0f', all[i]) end
  reply[2 * i], reply[2 * i + 1] = struct.pack('<d', #text), text
end
reply = table.concat(reply)
return reply .. redis.sha1hex(reply)
`
	sum := sha1.Sum([]byte(text))
	return &Script{Text: text, SHA: hex.EncodeToString(sum[:])}
}

// Durability is how a server keeps what is written.
type Durability struct {
	Server string // its address in a cluster, the name of a shard, otherwise "Redis"
	// AOF reports whether it has an append-only file.
	AOF bool
	// Fsync is its appendfsync; "" if that is not known, because CONFIG is forbidden.
	Fsync string
	// Policy is its maxmemory-policy.
	Policy string
}
