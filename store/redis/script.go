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

// form is what a script is for, by the file it is made from.
type form uint8

const (
	one form = iota
	each
	careful // each, by itself even where one cannot be asked
	eachAcross
	carefulAcross // both, of keys in several slots of a master
	several
	alter
	forms
)

var formFiles = [forms]string{"one", "each", "careful", "each", "careful", "several", "change"}

// single reports whether all its checks are of one law, and need no telling apart.
func (f form) single() bool { return f < several }

// across reports whether its keys are in several slots of one master.
func (f form) across() bool { return f == eachAcross || f == carefulAcross }

// scripts by form and by the kinds they know.
var scripts [forms][1 << kinds]atomic.Pointer[script]

// scriptFor puts a script together at the first call.
func scriptFor(f form, set kindSet) *script {
	at := &scripts[f][set]
	if s := at.Load(); s != nil {
		return s
	}
	text := compose(f, set)
	sum := sha1.Sum([]byte(text))
	s := &script{text: text, sha: hex.EncodeToString(sum[:])}
	at.Store(s)
	return s
}

// newScript is a script that is a file as it is.
func newScript(file string) *script {
	text, err := files.ReadFile("script/" + file + ".lua")
	if err != nil {
		panic("redis: " + err.Error()) // it is embedded
	}
	sum := sha1.Sum(text)
	return &script{text: string(text), sha: hex.EncodeToString(sum[:])}
}

var (
	recordScript = sync.OnceValue(func() *script { return newScript("record") })
	beatScript   = sync.OnceValue(func() *script { return newScript("beat") })
	probeScript  = sync.OnceValue(func() *script { return newScript("probe") })
)

// run sends a script by its hash, and its text only when Redis says that it does not
// know it. Nothing else is tried twice: after a timeout nobody knows whether it ran.
//
// The first argument starts with the tag of the call.
func (s *Store) run(ctx context.Context, sc *script, keys, args []string) (string, error) {
	client, err := s.link.get(ctx)
	if err != nil {
		return "", err
	}
	return runAt(ctx, client, sc, keys, args)
}

// runAt is run by a client of one server, or of a cluster.
func runAt(ctx context.Context, client rueidis.Client, sc *script, keys, args []string) (string, error) {
	result := client.Do(ctx, client.B().Evalsha().Sha1(sc.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if e, ok := rueidis.IsRedisErr(result.Error()); ok && e.IsNoScript() {
		result = client.Do(ctx, client.B().Eval().Script(sc.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	return result.ToString()
}

// numbers is run for a script that answers numbers.
func (s *Store) numbers(ctx context.Context, sc *script, keys, args []string, of tag) (reply, error) {
	text, err := s.run(ctx, sc, keys, args)
	if err != nil {
		return nil, err
	}
	return parseReply(text, of)
}
