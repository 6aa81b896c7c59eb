package chain

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
)

// Scripts runs Lua scripts of other packages on the servers of a Shared.
type Scripts interface {
	// Run runs a script on the server that has the first of the keys, which are all of one
	// slot, and returns the texts that it returned. After an error nobody knows whether it ran.
	Run(ctx context.Context, what string, s *Script, keys []string, args ...string) ([]string, error)
	// Home names the server that has a key, as far as is known.
	Home(key string) string
	// Prefix is what all keys begin with.
	Prefix() string
	// Durability asks every server how it keeps what is written. Servers that do not answer are
	// an error.
	Durability(ctx context.Context) ([]Durability, error)
}

// Script is a Lua script that returns a list of texts and numbers, up to 1 MiB together. KEYS are its
// keys; ARGV[1] is of the store, and its arguments are from ARGV[2] on.
type Script struct{ Text, SHA string }

// NewScript returns the script with that body.
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
	// Fsync is its appendfsync; "" if it does not say, as CONFIG is forbidden.
	Fsync string
	// Policy is its maxmemory-policy.
	Policy string
}
