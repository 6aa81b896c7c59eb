package redis

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"
)

//go:embed script/*.lua
var files embed.FS

// script is a Lua text with the hash that Redis knows it by.
type script struct {
	text, sha string
}

// template is what a script is made from, by its use. Some files have two uses.
type template uint8

const (
	takeOne         template = iota // one check
	takeEach                        // a batch of independent checks of one law
	takeEachCareful                 // the same while some keys cannot be used: the others are decided
	takeEachAcross                  // the same for keys in several slots of a master
	takeEachCarefulAcross
	peekOne   // one check, and nothing is written whatever was found
	takeMulti // the checks of one request, all or none
	changeCharges
	templateCount
)

var templateFiles = [templateCount]string{"one", "each", "careful", "each", "careful", "one", "multi", "change"}

// single reports whether all checks of the script are of one law.
func (f template) single() bool { return f < takeMulti }

// across reports whether its keys are in several slots of one master.
func (f template) across() bool { return f == takeEachAcross || f == takeEachCarefulAcross }

// scripts by template and by the kinds they know.
var scripts [templateCount][1 << kinds]atomic.Pointer[script]

// scriptFor returns a script, which is composed at the first call.
func scriptFor(f template, set kindSet) *script {
	at := &scripts[f][set]
	if s := at.Load(); s != nil {
		return s
	}
	s := scriptOf(compose(f, set))
	at.Store(s)
	return s
}

func scriptOf(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

// newScript returns the script in a file that is no template.
func newScript(file string) *script {
	text, err := files.ReadFile("script/" + file + ".lua")
	if err != nil {
		panic("redis: " + err.Error()) // it is embedded
	}
	return scriptOf(string(text))
}

var (
	recordScript = sync.OnceValue(func() *script { return newScript("record") })
	beatScript   = sync.OnceValue(func() *script { return newScript("beat") })
	probeScript  = sync.OnceValue(func() *script { return newScript("probe") })
)

// run sends a script by its hash, and its text only if Redis does not know it. Nothing else
// is tried twice: after a timeout nobody knows whether the script ran.
//
// The first argument starts with the tag of the call.
func (e *endpoint) run(ctx context.Context, sc *script, keys, args []string) (string, error) {
	client, err := e.client.get(ctx)
	if err != nil {
		return "", e.failed(err)
	}
	text, err := runAt(ctx, client, sc, keys, args)
	return text, e.failed(err)
}

// runAt is run by a client of one server, or of a cluster.
func runAt(ctx context.Context, client rueidis.Client, sc *script, keys, args []string) (string, error) {
	result := client.Do(ctx, client.B().Evalsha().Sha1(sc.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if e, ok := rueidis.IsRedisErr(result.Error()); ok && e.IsNoScript() {
		result = client.Do(ctx, client.B().Eval().Script(sc.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	return result.ToString()
}

// runNumbers is run for a script that answers numbers.
func (e *endpoint) runNumbers(ctx context.Context, sc *script, keys, args []string, of tag) (reply, error) {
	text, err := e.run(ctx, sc, keys, args)
	if err != nil {
		return nil, err
	}
	return parseReply(text, of)
}
