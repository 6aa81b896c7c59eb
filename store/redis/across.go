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

// In a cluster, a batch is for keys of one master, in whatever slots: script/across.lua. That
// takes a server that lets scripts touch keys they have not declared, and stops them at
// those of other masters. Which one does is found out by a script that only reads; where
// none does (before Redis 7, or as some services have it), asks are sent one by one.

// ability is whether a master can be sent batches.
type ability struct {
	state atomic.Int32
	until atomic.Int64 // in ns: unable until then, and unknown afterwards
}

const (
	unknown int32 = iota
	able
	unable
)

const (
	retryAble = time.Minute // until a server is asked again whether it can
	retrySoon = time.Second // and where it could not say
)

// now is the state at an instant.
func (a *ability) now(t time.Time) int32 {
	state := a.state.Load()
	if state == unable && t.UnixNano() >= a.until.Load() {
		return unknown
	}
	return state
}

func (a *ability) set(state int32, d time.Duration) {
	a.until.Store(time.Now().Add(d).UnixNano())
	a.state.Store(state)
}

// acrossCounts are asks in batches of several slots.
type acrossCounts struct {
	shared    atomic.Uint64 // that shared a call
	elsewhere atomic.Uint64 // of those, that had to be asked alone, as their keys were not there
	unrun     atomic.Uint64 // that had to be asked alone, as their call was not taken
}

// probeMaster finds out whether m can be sent batches.
func (s *Store) probeMaster(t *topology, m *master) {
	here, there := t.samples(m, s.prefix)
	if len(here) < 2 {
		m.able.set(unable, retryAble)
		return
	}
	tag := s.tag()
	var head packer
	head.number(float64(tag))
	args := []string{string(head), here[1]}
	if there != "" {
		args = append(args, there)
	}
	ctx, end := context.WithTimeout(context.Background(), surveyTime)
	defer end()
	text, err := runAt(ctx, m.client, probeScript(), here[:1], args)
	if err == nil {
		var got reply
		if got, err = parseReply(text, tag); err == nil && len(got) == 1 && got[0] == 1 {
			m.able.set(able, 0)
			return
		}
	}
	if e, ok := rueidis.IsRedisErr(err); err == nil || ok && !passing(e.Error()) {
		m.able.set(unable, retryAble)
	} else {
		m.able.set(unable, retrySoon)
	}
}

// samples are two names of keys in different slots of m, and one of another master.
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

// unrun are words of errors that a server gives before it runs a script.
var unrun = map[string]bool{
	"MOVED": true, "ASK": true, "TRYAGAIN": true, "CROSSSLOT": true, "CLUSTERDOWN": true, "NOPERM": true, "OOM": true,
	"READONLY": true, "MASTERDOWN": true, "MISCONF": true, "NOREPLICAS": true, "LOADING": true, "BUSY": true,
}

// passing reports whether an error says nothing of what a server is able to do.
func passing(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return unrun[word] && word != "NOPERM" && word != "CROSSSLOT"
}

// incapable are parts of what servers say that do not take such scripts.
var incapable = []string{"compiling script", "shebang", "undeclared", "input keys", "Unknown command", "unknown command"}

// notRun reports whether a script that has failed was not run at all, so that its asks may be
// sent once more. An error out of a script says where in it.
func notRun(text string) (not, never bool) {
	if strings.Contains(text, "user_script:") && !strings.Contains(text, "compiling script") {
		return false, false
	}
	word, _, _ := strings.Cut(text, " ")
	for _, part := range incapable {
		never = never || strings.Contains(text, part)
	}
	never = never || word == "NOPERM" || word == "CROSSSLOT"
	return unrun[word] || never, never
}

// askAcross asks a master for all of t, and notes the answers. What cannot be asked there is
// asked one by one: nothing was charged for it.
func (s *Store) askAcross(ctx context.Context, t *together) {
	if len(t.asks) == 1 {
		s.takeAlone(ctx, t.asks[0].from)
		return
	}
	form := eachAcross
	if s.batchForm() == careful {
		form = carefulAcross
	}
	var law kindSet
	law.add(t.asks[0].b.kind)
	head := string(t.args)
	args := append([]string{head[:sizeOfHead], head[sizeOfHead:]}, t.keys...)
	first := 1
	if t.asks[0].b.inRuns() {
		first = 2
	}
	text, err := runAt(ctx, t.master.client, scriptFor(form, law), t.keys[:first], args)
	if err != nil {
		s.survey()
		if e, ok := rueidis.IsRedisErr(err); ok {
			not, never := notRun(e.Error())
			if never {
				t.master.able.set(unable, retryAble)
			}
			if not {
				s.across.unrun.Add(uint64(len(t.asks)))
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

// takeEachAlone asks for each by itself, at the same time.
func (s *Store) takeEachAlone(ctx context.Context, asks []*ask) {
	var all sync.WaitGroup
	for _, a := range asks {
		all.Go(func() { s.takeAlone(ctx, a.from) })
	}
	all.Wait()
}
