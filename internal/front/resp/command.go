package resp

import (
	"strings"
	"time"
)

// command is one that clients can send.
type command struct {
	name  string // in lower case
	arity int    // arguments with the name; negative: at least so many
	run   func(*conn, [][]byte)
	free  bool   // before AUTH as well
	key   int    // index of the first key; 0 means none
	group string // of COMMAND DOCS
	usage string // how it is written, after the name
	about string // what it does, in a line
}

// maxName is longer than the name of any command.
const maxName = 16

// commands by name.
var commands map[string]*command

// inOrder are the commands in the order in which they are listed.
var inOrder []*command

func init() {
	inOrder = []*command{
		{"cl.throttle", -1, (*conn).throttle, false, 1, "tidegate", "key max_burst count period [quantity]", "Takes from a bucket that regains count every period seconds, as redis-cell does"},
		{"del", -2, (*conn).del, false, 1, "generic", "key [key ...]", "Makes keys of CL.THROTTLE start afresh"},
		{"unlink", -2, (*conn).del, false, 1, "generic", "key [key ...]", "Is DEL"},
		{"tg.check", -2, (*conn).check, false, 0, "tidegate", request + " [REPORT]", "Holds a request to the rules and charges it"},
		{"tg.mcheck", -2, (*conn).checkMany, false, 0, "tidegate", request + " [REPORT] [NEXT PATH ...]", "Holds several requests to the rules, each by itself"},
		{"tg.peek", -2, (*conn).peek, false, 0, "tidegate", request, "Tells what TG.CHECK would, and charges nothing"},
		{"tg.usage", -2, (*conn).usage, false, 0, "tidegate", request, "Lists the limits that a request is held to, and what is left of each"},
		{"tg.reserve", -2, (*conn).reserve, false, 0, "tidegate", request, "Charges a cost as an estimate, for TG.SETTLE to replace"},
		{"tg.settle", -2, (*conn).settle, false, 0, "tidegate", "ticket [STATUS status] [COST cost]", "Tells how a request ended and what it cost"},
		{"tg.acquire", -2, (*conn).acquire, false, 0, "tidegate", request + " [REPORT]", "Takes a slot of every rule with concurrency, and charges the others"},
		{"tg.renew", 2, (*conn).renew, false, 0, "tidegate", "ticket", "Prolongs the leases of slots"},
		{"tg.release", 2, (*conn).release, false, 0, "tidegate", "ticket", "Gives slots back"},
		{"ping", -1, (*conn).ping, false, 0, "connection", "[message]", "Answers PONG, or the message"},
		{"echo", 2, (*conn).echo, false, 0, "connection", "message", "Answers the message"},
		{"hello", -1, (*conn).hello, true, 0, "connection", "[protover [AUTH username password] [SETNAME clientname]]", "Chooses the version of the protocol"},
		{"auth", -2, (*conn).auth, true, 0, "connection", "[username] password", "Authenticates the connection"},
		{"client", -2, (*conn).client, false, 0, "connection", "subcommand [argument ...]", "Tells about connections"},
		{"select", 2, (*conn).choose, false, 0, "connection", "index", "Accepts database 0, the only one"},
		{"reset", 1, (*conn).reset, true, 0, "connection", "", "Makes the connection as it was at first"},
		{"quit", -1, (*conn).quit, true, 0, "connection", "", "Closes the connection"},
		{"command", -1, (*conn).command, false, 0, "server", "[COUNT | DOCS | INFO | LIST]", "Lists the commands"},
		{"info", -1, (*conn).info, false, 0, "server", "[section ...]", "Tells about the server"},
		{"config", -2, (*conn).config, false, 0, "server", "GET parameter [parameter ...]", "Knows the few parameters that clients ask for"},
	}
	commands = make(map[string]*command, len(inOrder))
	for _, c := range inOrder {
		commands[c.name] = c
	}
}

// execute answers one command.
func (c *conn) execute(args [][]byte) {
	cmd := c.find(args[0])
	if len(c.pending) > 0 && (cmd == nil || cmd.name != "cl.throttle") {
		c.settlePending()
	}
	switch {
	case cmd != nil && !c.anonymous():
	case cmd != nil && cmd.free:
	case c.anonymous():
		c.error("NOAUTH Authentication required.")
		return
	default:
		c.unknown(args)
		return
	}
	if n := len(args); n != cmd.arity && (cmd.arity > 0 || n < -cmd.arity) {
		c.error("ERR wrong number of arguments for '" + cmd.name + "' command")
		return
	}
	if c.srv.o.Access == nil {
		cmd.run(c, args)
		return
	}
	start := time.Now()
	c.access.Command = ""
	cmd.run(c, args)
	if c.access.Command != "" {
		c.log(cmd.name, start)
	}
}

// log tells the access log of the decision that was made last.
func (c *conn) log(command string, start time.Time) {
	c.access.Command, c.access.Took, c.access.User = command, time.Since(start), ""
	if c.account != nil {
		c.access.User = c.account.Name
	}
	c.srv.o.Access(&c.access)
	c.access.Command = ""
}

// find finds a command by its name. Clients mostly repeat the last one.
func (c *conn) find(name []byte) *command {
	if string(c.named[:c.length]) == string(name) && c.last != nil {
		return c.last
	}
	if len(name) > maxName {
		return nil
	}
	var room [maxName]byte
	low := lower(room[:0], name)
	found := commands[string(low)]
	if found == nil || !c.srv.serves(found) {
		return nil
	}
	c.last, c.length = found, copy(c.named[:], name)
	return found
}

// serves reports whether the server has the Desk or the Store that a command needs.
func (s *Server) serves(c *command) bool {
	switch {
	case strings.HasPrefix(c.name, "tg."):
		return s.o.Desk != nil
	case c.key > 0:
		return s.o.Store != nil
	}
	return true
}

func lower(dst, b []byte) []byte {
	for _, c := range b {
		if c-'A' <= 'Z'-'A' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

// absent says why there are no such commands, for those of Redis that clients may expect.
var absent = map[string]string{
	"multi": transactions, "exec": transactions, "discard": transactions, "watch": transactions, "unwatch": transactions,
	"eval": scripts, "evalsha": scripts, "eval_ro": scripts, "evalsha_ro": scripts, "fcall": scripts, "fcall_ro": scripts,
	"function": scripts, "script": scripts,
	"subscribe": messages, "psubscribe": messages, "ssubscribe": messages, "unsubscribe": messages, "punsubscribe": messages,
	"sunsubscribe": messages, "publish": messages, "spublish": messages, "monitor": messages,
	"cluster": clusters, "readonly": clusters, "readwrite": clusters, "asking": clusters,
}

const (
	transactions = "Tidegate has no transactions: every command is decided by itself, and TG.CHECK charges all limits of a request or none"
	scripts      = "Tidegate runs no scripts: write a rule, and ask it by TG.CHECK"
	messages     = "Tidegate passes no messages on"
	clusters     = "This instance has cluster support disabled: connect to any instance of Tidegate, they share their counters"
)

// unknown answers what is not a command.
func (c *conn) unknown(args [][]byte) {
	name := args[0]
	if len(name) <= maxName {
		var room [maxName]byte
		if why := absent[string(lower(room[:0], name))]; why == clusters {
			c.error("ERR " + why)
			return
		} else if why != "" {
			c.error("ERR " + strings.ToUpper(string(name)) + " is not supported. " + why)
			return
		}
	}
	var b strings.Builder
	b.WriteString("ERR unknown command '")
	b.Write(name[:min(len(name), 128)])
	b.WriteString("', with args beginning with: ")
	for _, a := range args[1:] {
		if b.Len() > 256 {
			break
		}
		b.WriteString("'")
		b.Write(a[:min(len(a), 128)])
		b.WriteString("' ")
	}
	c.error(b.String())
}
