package redis

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// In a cluster, a batch is for keys of one master, in any of its slots: script/across.lua.
// The server must let scripts touch keys that they have not declared, and stop them at keys
// of other masters. A script that only reads finds out whether a master does so. If it does
// not (before Redis 7, and in some hosted services), asks are sent one by one.

// batchSupport is whether a master supports batches.
type batchSupport struct {
	state atomic.Int32
	until atomic.Int64 // in ns: unsupported until then, and unknown afterwards
}

const (
	supportUnknown int32 = iota
	supported
	unsupported
)

const (
	recheckLater = time.Minute // until a server without support is probed again
	recheckSoon  = time.Second // the same after a probe that failed
)

// now returns the state at an instant.
func (a *batchSupport) now(t time.Time) int32 {
	state := a.state.Load()
	if state == unsupported && t.UnixNano() >= a.until.Load() {
		return supportUnknown
	}
	return state
}

func (a *batchSupport) set(state int32, d time.Duration) {
	a.until.Store(time.Now().Add(d).UnixNano())
	a.state.Store(state)
}

// acrossCounts counts asks in batches of several slots.
type acrossCounts struct {
	shared    atomic.Uint64 // that shared a call
	elsewhere atomic.Uint64 // of those, asked again alone because their keys were not there
	notRun    atomic.Uint64 // asked again alone because the script was not run
}

// probeMaster finds out whether m supports batches.
func (s *Store) probeMaster(t *topology, m *master) {
	here, there := t.samples(m, s.prefix)
	if len(here) < 2 {
		m.support.set(unsupported, recheckLater)
		return
	}
	tag := s.tag()
	var head packer
	head.number(float64(tag))
	args := []string{string(head), here[1]}
	if there != "" {
		args = append(args, there)
	}
	ctx, end := context.WithTimeout(context.Background(), topologyTimeout)
	defer end()
	text, err := runAt(ctx, m.client, probeScript(), here[:1], args)
	if err == nil {
		var got reply
		if got, err = parseReply(text, tag); err == nil && len(got) == 1 && got[0] == 1 {
			m.support.set(supported, 0)
			return
		}
	}
	if e, ok := rueidis.IsRedisErr(err); err == nil || ok && !isTransient(e.Error()) {
		m.support.set(unsupported, recheckLater)
	} else {
		m.support.set(unsupported, recheckSoon)
	}
}

// samples returns the names of two keys in different slots of m, and of one of another master: fewer,
// and "", if it finds none.
func (t *topology) samples(m *master, prefix string) (here []string, there string) {
	for i := 0; i < 4*slotCount && (len(here) < 2 || there == "" && len(t.masters) > 1); i++ {
		key := prefix + ":{" + strconv.Itoa(i) + "}"
		switch owner := t.owners[slotOfKey(key)]; {
		case owner == m && len(here) == 0, owner == m && len(here) == 1 && slotOfKey(key) != slotOfKey(here[0]):
			here = append(here, key)
		case owner != nil && owner != m:
			there = key
		}
	}
	return here, there
}

// notRunCodes are the codes of errors that a server gives before it runs a script.
var notRunCodes = map[string]bool{
	"MOVED": true, "ASK": true, "TRYAGAIN": true, "CROSSSLOT": true, "CLUSTERDOWN": true, "NOPERM": true, "OOM": true,
	"READONLY": true, "MASTERDOWN": true, "MISCONF": true, "NOREPLICAS": true, "LOADING": true, "BUSY": true,
}

// isTransient reports whether an error will pass, and says nothing about support of batches.
func isTransient(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return notRunCodes[word] && word != "NOPERM" && word != "CROSSSLOT"
}

// unsupportedTexts are parts of the errors of servers that do not support such scripts.
var unsupportedTexts = []string{"compiling script", "shebang", "undeclared", "input keys", "Unknown command", "unknown command"}

// notRun reports whether a script that failed was not run at all, so that its asks may be sent
// again, and whether the server can never run it. An error that was raised inside a script names
// the line.
func notRun(text string) (not, never bool) {
	if strings.Contains(text, "user_script:") && !strings.Contains(text, "compiling script") {
		return false, false
	}
	word, _, _ := strings.Cut(text, " ")
	for _, part := range unsupportedTexts {
		never = never || strings.Contains(text, part)
	}
	never = never || word == "NOPERM" || word == "CROSSSLOT"
	return notRunCodes[word] || never, never
}

// askAcross sends all of t to a master, and notes the answers. Asks that the master does not
// take are sent one by one: nothing was charged for them.
func (s *Store) askAcross(ctx context.Context, t *lawBatch) {
	if len(t.asks) == 1 {
		s.takeAlone(ctx, t.asks[0].from)
		return
	}
	template := takeEachAcross
	if s.batchTemplate() == takeEachCareful {
		template = takeEachCarefulAcross
	}
	var law kindSet
	law.add(t.asks[0].lim.kind)
	head := string(t.args)
	args := append([]string{head[:sizeOfHead], head[sizeOfHead:]}, t.keys...)
	first := 1
	if t.asks[0].lim.isRuns() {
		first = 2
	}
	text, err := runAt(ctx, t.master.client, scriptFor(template, law), t.keys[:first], args)
	if err != nil {
		s.refreshTopology()
		if e, ok := rueidis.IsRedisErr(err); ok {
			not, never := notRun(e.Error())
			if never {
				t.master.support.set(unsupported, recheckLater)
			}
			if not {
				s.across.notRun.Add(uint64(len(t.asks)))
				s.takeEachAlone(ctx, t.asks)
				return
			}
		}
		t.fail(s, err)
		return
	}
	s.across.shared.Add(uint64(len(t.asks)))
	got, err := parseReply(text, t.tag)
	if err == nil {
		err = s.answers(ctx, t, got)
	}
	if err != nil {
		t.fail(s, err)
	}
}

// takeEachAlone sends each ask by itself, all at the same time.
func (s *Store) takeEachAlone(ctx context.Context, asks []*batchItem) {
	var all sync.WaitGroup
	for _, a := range asks {
		all.Go(func() { s.takeAlone(ctx, a.from) })
	}
	all.Wait()
}
