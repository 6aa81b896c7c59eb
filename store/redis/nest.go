package redis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// shape is what is known of a few checks when their script is composed: three bits for each of
// them, behind a bit that is set. The script of a shape, nest.lua, takes Redis about two thirds of
// the time of one that has to be ready for anything, multi.lua.
type shape uint16

// maxNested is how many checks a nested script has at most. The locals of all of them are in use
// at the same time, and Lua allows 200.
const maxNested = 3

// nestedCheck is a check in a shape.
type nestedCheck struct {
	law    kind
	shares bool // its key is that of the next check as well
}

// shapeOf returns the shape of checks, or false if they need multi.lua: because of how many they
// are, because of their laws, or because checks of one key do not follow each other.
func shapeOf(pending []*pendingCheck) (shape, bool) {
	if len(pending) < 2 || len(pending) > maxNested {
		return 0, false
	}
	all := shape(1)
	for i, p := range pending {
		if p.lim.kind > parts { // more than a state in a box
			return 0, false
		}
		sameKey := func(q *pendingCheck) bool { return q.key == p.key }
		others := pending[i+1:]
		shares := len(others) > 0 && sameKey(others[0])
		if !shares && slices.ContainsFunc(others, sameKey) {
			return 0, false
		}
		all = all<<3 | shape(p.lim.kind-1)<<1
		if shares {
			all |= 1
		}
	}
	return all, true
}

// checks returns what the shape says of each check.
func (s shape) checks() (all []nestedCheck) {
	for ; s > 1; s >>= 3 {
		all = append(all, nestedCheck{law: kind(s>>1&3) + 1, shares: s&1 == 1})
	}
	slices.Reverse(all)
	return all
}

// joinNested returns the argument of a nested script, which begins with head.
func joinNested(head packer, checks []string) string {
	begin := len(head) + 2*len(checks) + 1 // Lua counts from 1
	for _, check := range checks {
		head.uint16(uint16(begin))
		begin += len(check)
	}
	for _, check := range checks {
		head.text(check)
	}
	return string(head)
}

// nestedScripts are scripts by their shape.
var nestedScripts [1 << (3*maxNested + 1)]atomic.Pointer[script]

// nestedScript returns the script of a shape, which is composed at the first call.
func nestedScript(s shape) *script {
	at := &nestedScripts[s]
	if made := at.Load(); made != nil {
		return made
	}
	made := scriptOf(composeNested(s))
	at.Store(made)
	return made
}

func composeNested(s shape) string {
	all := s.checks()
	c := composer{template: takeMulti}
	for _, check := range all {
		c.set.add(check.law)
	}
	c.start()
	begins := ""
	for i := range all {
		begins += ", " + numbered("from", i)
	}
	fmt.Fprintf(&c, "local copies%s = unpack('<d%s', ARGV[1], 17)\n", begins, strings.Repeat("I2", len(all)))
	c.write(sectionOf("nest", "start"))
	for i := range all {
		fmt.Fprintf(&c, "local %s, %s\n", numbered(answerNames, i), numbered(restNames, i))
	}
	for i, check := range slices.Backward(all) {
		c.nested = &check
		fmt.Fprintf(&c, "do\nlocal i, from = %d, %s\n", i+1, numbered("from", i))
		c.write(sectionOf("nest", "look"))
	}
	c.write(sectionOf("nest", "decide"))
	for i, check := range all {
		c.nested = &check
		c.shared = check.shares || i > 0 && all[i-1].shares
		c.write(sectionOf("nest", "charge"))
		fmt.Fprintf(&c, "%s, %s = %s, %s\n", numbered(answerNames, i), numbered(restNames, i), answerNames, restNames)
		if c.shared && !check.shares {
			c.write(sectionOf("nest", "leave"))
		}
		c.WriteString("end\n")
	}
	c.reply(len(all))
	return c.String()
}

// What the reply says of each check, and what it says besides when some copies were granted and
// not all; see one.lua.
const (
	answerNames = "fit, left, reset, resett, delay, delayt"
	restNames   = "later, latert"
)

// numbered returns variables of check i.
func numbered(names string, i int) string {
	n := strconv.Itoa(i + 1)
	return strings.ReplaceAll(names, ",", n+",") + n
}

// reply appends the reply about n checks, in one piece.
func (c *composer) reply(n int) {
	brief, whole := "tag, granted, now", "tag, granted, now"
	for i := range n {
		brief += ", " + numbered(answerNames, i)
		whole += ", " + numbered(answerNames, i) + ", " + numbered(restNames, i)
	}
	send := func(all string) string {
		sum := strings.ReplaceAll(all, ",", " +")
		return fmt.Sprintf("return pack('<d%s', %s, %s)", strings.Repeat("d", strings.Count(all, ",")+1), all, sum)
	}
	fmt.Fprintf(c, "if some then %s end\n%s\n", send(whole), send(brief))
}
