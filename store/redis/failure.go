package redis

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/redis/internal/rediswire"
)

var (
	errNoURL    = errors.New("no address: give a URL such as redis://localhost:6379")
	errClosed   = errors.New("the store is closed")
	errRecord   = errors.New("the reservation was not written by this version of Tidegate")
	errNonsense = errors.New("the server answered what cannot be")
	errMissed   = errors.New("the calendar of this process does not reach Redis' clock: compare their times")
)

// trouble is a kind of error that Redis answers.
type trouble struct {
	advice string
	// alone: it is about this question, and says nothing about others.
	alone bool
}

// troubles by the word that Redis' error has for them. What is not here, and no error of
// a script, counts as trouble of the server.
var troubles = map[string]trouble{
	"WRONGTYPE": {"somebody else keeps something under this key: delete it, or use another prefix", true},
	"NOPERM":    {"the user needs to read, write and run scripts on the keys of the prefix: docs/redis.md has the commands", true},

	// The keys of one slot are on their way; those of all others can be asked about.
	"TRYAGAIN": {"keys are being moved to another node", true},

	"NOAUTH":      {advice: "give a password, as in redis://:password@host"},
	"WRONGPASS":   {advice: "the user name or the password is wrong"},
	"OOM":         {advice: "the server is out of memory: raise maxmemory"},
	"MISCONF":     {advice: "the server cannot write to its disk, and takes no writes until it can"},
	"NOREPLICAS":  {advice: "the server has fewer replicas than min-replicas-to-write"},
	"READONLY":    {advice: "the server is a replica: ask Sentinel or the cluster for the master"},
	"MOVED":       {advice: "the server is a node of a cluster: use redis-cluster:// or several addresses"},
	"CROSSSLOT":   {advice: "the server is a node of a cluster: use redis-cluster:// or several addresses"},
	"CLUSTERDOWN": {advice: "the cluster has slots without a master"},
	"MASTERDOWN":  {advice: "the server is a replica that has lost its master"},
	"LOADING":     {advice: "the server is reading its data and will answer when it has"},
	"BUSY":        {advice: "the server is held up by a script that does not end: SCRIPT KILL ends it"},
	"UNKILLABLE":  {advice: "the server is held up by a script that has written: only SHUTDOWN NOSAVE ends it"},
}

// codes finds the word where a script's error wraps it, as every version does it in its
// own way: "ERR Error running script (call to f_…): @user_script:3: -OOM command not …".
var codes = regexp.MustCompile(`(?:^|[^A-Za-z])-?(WRONGTYPE|NOPERM|OOM|MISCONF|NOREPLICAS|READONLY|MASTERDOWN|CLUSTERDOWN|LOADING|BUSY|CROSSSLOT|TRYAGAIN)(?:[^A-Za-z]|$)`)

// forbidden is how scripts are told that a user may not do something, besides NOPERM.
var forbidden = []string{"ACL failure in script", "can't run this command", "can't access at least one of the keys", "can't access the specified"}

// sentences are errors that have no word of their own, with what helps.
var sentences = []struct{ text, advice string }{
	{"max number of clients reached", "raise maxclients of the server, or have fewer connect"},
	{"DB index is out of range", "the URL names a database that the server does not have"},
	{"Client sent AUTH, but no password is set", "the server asks for no password: leave it out of the URL"},
	{"without any password configured", "the server asks for no password: leave it out of the URL"},
	{"running in protected mode", "the server only takes connections from its own machine: give it a password, or bind it elsewhere"},
	{"unknown command 'EVAL", "the server runs no scripts: Tidegate needs EVALSHA and EVAL"},
	{"unknown command `EVAL", "the server runs no scripts: Tidegate needs EVALSHA and EVAL"},
	{"Unknown Redis command called from script", "a command is disabled that this rule needs: docs/redis.md has them"},
}

// classify says what kind of trouble an error of Redis is.
func classify(text string) (t trouble) {
	word, _, _ := strings.Cut(text, " ")
	if _, known := troubles[word]; !known {
		word = ""
		if m := codes.FindStringSubmatch(text); m != nil {
			word = m[1]
		}
		for _, f := range forbidden {
			if strings.Contains(text, f) {
				word = "NOPERM"
			}
		}
	}
	t = troubles[word]
	switch {
	case word == "NOPERM" && asksForAll(text):
		t.alone = false
	case word == "" && strings.Contains(text, "user_script"):
		t = trouble{"somebody else keeps something under this key, or the server runs scripts in its own way", true}
	}
	for _, s := range sentences {
		if word == "" && strings.Contains(text, s.text) {
			t.advice = s.advice
		}
	}
	return t
}

// asksForAll reports whether a user may not run any script at all, nor introduce itself.
func asksForAll(text string) bool {
	lower := strings.ToLower(text)
	for _, name := range []string{"evalsha", "eval", "hello", "auth", "select", "time"} {
		if strings.Contains(lower, "'"+name+"'") {
			return true
		}
	}
	return false
}

// surplus are parts of errors that say nothing to an operator: where in a script it was, and,
// after a command that the server does not have, the script itself.
var surplus = regexp.MustCompile(`(?s), with args beginning with:.*| script: [0-9a-f]{40}, on @user_script:\d+\.`)

// advised is err with what helps, if that is known.
func advised(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return advisedAll(all.Unwrap())
	}
	text := ""
	var answer *rueidis.RedisError
	var said rediswire.ServerError
	if errors.As(err, &answer) && !answer.IsNil() {
		text = answer.Error()
	} else if errors.As(err, &said) {
		text = string(said)
	}
	if text == "" {
		return adviseOn(err)
	}
	t := classify(text)
	if short := surplus.ReplaceAllString(text, ""); short != text {
		text, err = short, rediswire.ServerError(short)
	}
	if len(text) > maxErrorText { // an error of a script may quote a lot
		err = errors.New(strings.ToValidUTF8(text[:maxErrorText], "") + "…")
	}
	if t.advice != "" {
		err = fmt.Errorf("%w (%s)", err, t.advice)
	}
	if t.alone {
		err = alone{err}
	}
	return err
}

// advisedAll is what is wrong with several servers, or about several subjects, each with
// what helps, and each said once. It is about one question only if all are.
func advisedAll(all []error) error {
	var told severalErrors
	outer := false
	for _, err := range all {
		err = advised(err)
		if !slices.ContainsFunc(told, func(e error) bool { return e.Error() == err.Error() }) {
			told = append(told, err)
		}
		outer = outer || !errors.Is(err, tidegate.ErrCannotAsk)
	}
	if outer {
		for i, err := range told {
			if a, ok := err.(alone); ok {
				told[i] = a.error
			}
		}
	}
	if len(told) == 1 {
		return told[0]
	}
	return told
}

// adviseOn is err of a connection over which the server said, unasked, what was wrong.
func adviseOn(err error) error {
	var v *rediswire.Violation
	if errors.As(err, &v) && strings.HasPrefix(v.Got, "-") {
		if t := classify(v.Got[1:]); t.advice != "" {
			return fmt.Errorf("%w (%s)", err, t.advice)
		}
	}
	return err
}

// waryTime is how long batches are asked carefully after something could not be asked.
const waryTime = time.Minute

// batchForm is the script that decides a batch. One that cannot be asked about fails all
// that were sent with it, the first time; see careful.lua.
func (s *Store) batchForm() form {
	if until := s.wary.Load(); until > 0 && time.Now().UnixNano() < until {
		return careful
	}
	return each
}

const maxErrorText = 300

// alone is an error of a server that works, about one question.
type alone struct{ error }

func (a alone) Unwrap() []error { return []error{a.error, tidegate.ErrCannotAsk} }

// severalErrors are errors that came of one question.
type severalErrors []error

func (all severalErrors) Error() string {
	texts := make([]string, len(all))
	for i, err := range all {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (all severalErrors) Unwrap() []error { return all }

// failure says what could not be done, and what helps.
func failure(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redis: %s: %w", what, advised(err))
}

// failure is failure with what is wrong with the connection, where a call failed without
// an answer: that is all that a caller with a short deadline would not see.
func (s *Store) failure(what string, err error) (told error) {
	if err == nil {
		return nil
	}
	s.survey() // perhaps of where things are
	defer func() {
		if errors.Is(told, tidegate.ErrCannotAsk) {
			s.wary.Store(time.Now().Add(waryTime).UnixNano())
		}
	}()
	var answer *rueidis.RedisError
	why := inside{s}.Trouble()
	switch {
	case why == nil, errors.As(err, &answer), errors.Is(err, errNonsense):
		return failure(what, err)
	case !errors.Is(err, context.DeadlineExceeded) && strings.Contains(why.Error(), err.Error()):
		return failure(what, err) // it is the same
	}
	return fmt.Errorf("redis: %s: %w: %w", what, err, why)
}
