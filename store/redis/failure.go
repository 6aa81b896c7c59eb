package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/redis/internal/rediswire"
)

var (
	errClosed       = errors.New("the store is closed")
	errRecord       = errors.New("the reservation was not written by this version of Tidegate")
	errInvalidReply = errors.New("the server sent an invalid reply")
	errMissed       = errors.New("the calendar of this process does not reach Redis' clock: compare their times")
)

// errorClass is a kind of error that Redis returns.
type errorClass struct {
	advice string
	// oneRequest says that only this request failed, and others may work.
	oneRequest bool
}

// errorClasses by the code that Redis' error starts with. Any other error, unless a script
// raised it, is one of the whole server.
var errorClasses = map[string]errorClass{
	"WRONGTYPE": {"something else is stored under this key: delete it, or use another prefix", true},
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
	"ASK":         {advice: "the server is a node of a cluster: use redis-cluster:// or several addresses"},
	"CROSSSLOT":   {advice: "the server is a node of a cluster: use redis-cluster:// or several addresses"},
	"CLUSTERDOWN": {advice: "the cluster has slots without a master"},
	"MASTERDOWN":  {advice: "the server is a replica that has lost its master"},
	"LOADING":     {advice: "the server is reading its data and will answer when it has"},
	"BUSY":        {advice: "the server is held up by a script that does not end: SCRIPT KILL ends it"},
	"UNKILLABLE":  {advice: "the server is held up by a script that has written: only SHUTDOWN NOSAVE ends it"},
}

// codes finds the code inside an error of a script, which every version wraps in its own
// way: "ERR Error running script (call to f_…): @user_script:3: -OOM command not …".
var codes = regexp.MustCompile(`(?:^|[^A-Za-z])-?(WRONGTYPE|NOPERM|OOM|MISCONF|NOREPLICAS|READONLY|MASTERDOWN|CLUSTERDOWN|LOADING|BUSY|CROSSSLOT|TRYAGAIN)(?:[^A-Za-z]|$)`)

// forbidden are texts of errors, besides NOPERM, that say that a user may not do something.
var forbidden = []string{"ACL failure in script", "can't run this command", "can't access at least one of the keys", "can't access the specified"}

// errorTexts are errors without a code, with what helps.
var errorTexts = []struct{ text, advice string }{
	{"max number of clients reached", "raise maxclients of the server, or have fewer connect"},
	{"DB index is out of range", "the URL names a database that the server does not have"},
	{"Client sent AUTH, but no password is set", "the server asks for no password: leave it out of the URL"},
	{"without any password configured", "the server asks for no password: leave it out of the URL"},
	{"running in protected mode", "the server only takes connections from its own machine: give it a password, or bind it elsewhere"},
	{"unknown command 'EVAL", "the server runs no scripts: Tidegate needs EVALSHA and EVAL"},
	{"unknown command `EVAL", "the server runs no scripts: Tidegate needs EVALSHA and EVAL"},
	{"Unknown Redis command called from script", "a command is disabled that this rule needs: docs/redis.md has them"},
}

// classify returns the kind of an error of Redis.
func classify(text string) (t errorClass) {
	word, _, _ := strings.Cut(text, " ")
	if _, known := errorClasses[word]; !known {
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
	t = errorClasses[word]
	switch {
	case word == "NOPERM" && asksForAll(text):
		t.oneRequest = false
	case word == "" && strings.Contains(text, "user_script"):
		t = errorClass{"something else is stored under this key, or the server runs scripts in its own way", true}
	}
	for _, s := range errorTexts {
		if word == "" && strings.Contains(text, s.text) {
			t.advice = s.advice
		}
	}
	return t
}

// asksForAll reports whether a user may not run any script at all, or not even log in.
func asksForAll(text string) bool {
	lower := strings.ToLower(text)
	for _, name := range []string{"evalsha", "eval", "hello", "auth", "select", "time"} {
		if strings.Contains(lower, "'"+name+"'") {
			return true
		}
	}
	return false
}

// errorNoise matches parts of errors that do not help an operator: the line of the script, and,
// after a command that the server does not have, the script itself.
var errorNoise = regexp.MustCompile(`(?s), with args beginning with:.*| script: [0-9a-f]{40}, on @user_script:\d+\.`)

// withAdvice returns err with what helps, if that is known.
func withAdvice(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return withAdviceAll(all.Unwrap())
	}
	text := ""
	var answer *rueidis.RedisError
	var serverError rediswire.ServerError
	if errors.As(err, &answer) && !answer.IsNil() {
		text = answer.Error()
	} else if errors.As(err, &serverError) {
		text = string(serverError)
	}
	if text == "" {
		return violationWithAdvice(err)
	}
	t := classify(text)
	if short := errorNoise.ReplaceAllString(text, ""); short != text {
		text, err = short, rediswire.ServerError(short)
	}
	if len(text) > maxErrorText { // an error of a script may quote a lot
		err = errors.New(strings.ToValidUTF8(text[:maxErrorText], "") + "…")
	}
	if t.advice != "" {
		err = fmt.Errorf("%w (%s)", err, t.advice)
	}
	if t.oneRequest {
		err = requestError{err}
	}
	return err
}

// withAdviceAll returns errors of several servers, or about several subjects, each with what
// helps, and each once. The result is about one request only if all of them are.
func withAdviceAll(all []error) error {
	var result multiError
	outer := false
	for _, err := range all {
		err = withAdvice(err)
		if !slices.ContainsFunc(result, func(e error) bool { return e.Error() == err.Error() }) {
			result = append(result, err)
		}
		outer = outer || !errors.Is(err, tidegate.ErrCannotAsk)
	}
	if outer {
		for i, err := range result {
			if a, ok := err.(requestError); ok {
				result[i] = a.error
			}
		}
	}
	if len(result) == 1 {
		return result[0]
	}
	return result
}

// violationWithAdvice returns err with what helps, if the server sent an error before any request.
func violationWithAdvice(err error) error {
	var v *rediswire.Violation
	if errors.As(err, &v) && strings.HasPrefix(v.Got, "-") {
		if t := classify(v.Got[1:]); t.advice != "" {
			return fmt.Errorf("%w (%s)", err, t.advice)
		}
	}
	return err
}

// carefulTime is how long batches use the careful template after one check failed alone.
const carefulTime = time.Minute

// batchTemplate returns the template that decides a batch. The first time, a check that fails
// alone fails all that were sent with it; see careful.lua.
func (s *Store) batchTemplate() template {
	if until := s.carefulUntil.Load(); until > 0 && time.Now().UnixNano() < until {
		return takeEachCareful
	}
	return takeEach
}

const maxErrorText = 300

// requestError is an error of one request, from a server that works.
type requestError struct{ error }

func (a requestError) Unwrap() []error { return []error{a.error, tidegate.ErrCannotAsk} }

// noReply is the error of a call that was sent, and whose reply did not arrive whole.
type noReply struct{ error }

func (n noReply) Unwrap() []error { return []error{n.error, chain.ErrNoReply} }

// dialError is why there is no connection: no call was sent.
type dialError struct{ error }

func (d dialError) Unwrap() error { return d.error }

// cutOff reports whether err means that a connection broke after a call was sent, or was closed because of
// what came.
func cutOff(err error) bool {
	var dial dialError
	var hello rediswire.Unwelcome
	var op *net.OpError
	var v *rediswire.Violation
	return !errors.As(err, &dial) && !errors.As(err, &hello) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errInvalidReply) ||
		errors.As(err, &v) || errors.As(err, &op))
}

// multiError are the errors of one request.
type multiError []error

func (all multiError) Error() string {
	texts := make([]string, len(all))
	for i, err := range all {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (all multiError) Unwrap() []error { return all }

// failure returns an error that says what failed, why, and what helps.
func failure(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redis: %s: %w", what, withAdvice(err))
}

// failure does what the function failure does. If a call failed without an answer, the error also says
// what is wrong with the connection: a caller with a short deadline would not see that otherwise.
func (s *Store) failure(what string, err error) (result error) {
	if err == nil {
		return nil
	}
	s.refreshTopology() // slots may have moved
	cut := cutOff(err)
	defer func() {
		if cut {
			result = noReply{result}
		}
		if errors.Is(result, tidegate.ErrCannotAsk) {
			s.carefulUntil.Store(time.Now().Add(carefulTime).UnixNano())
		}
	}()
	var answer *rueidis.RedisError
	why := s.troubleOf(err)
	switch {
	case why == nil, errors.As(err, &answer), errors.Is(err, errInvalidReply):
		return failure(what, err)
	case !errors.Is(err, context.DeadlineExceeded) && strings.Contains(why.Error(), err.Error()): // it is the same
		if s.sharded() { // it says of which
			err = why
		}
		return failure(what, err)
	}
	return fmt.Errorf("redis: %s: %w: %w", what, err, why)
}
