package resp

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func (c *conn) ping(args [][]byte) {
	switch len(args) {
	case 1:
		c.out = append(c.out, "+PONG\r\n"...)
	case 2:
		c.bytes(args[1])
	default:
		c.error("ERR wrong number of arguments for 'ping' command")
	}
}

func (c *conn) echo(args [][]byte) { c.bytes(args[1]) }

func (c *conn) choose(args [][]byte) {
	switch n, ok := integer(args[1]); {
	case !ok:
		c.error("ERR invalid DB index")
	case n != 0:
		c.error("ERR DB index is out of range")
	default:
		c.ok()
	}
}

func (c *conn) quit([][]byte) {
	c.ok()
	c.closing = true
}

func (c *conn) reset([][]byte) {
	was := c.anonymous()
	c.account, c.name, c.resp = nil, "", 2
	c.startAuthTime(was)
	c.simple("RESET")
}

func (c *conn) auth(args [][]byte) {
	switch {
	case len(args) > 3:
		c.error("ERR syntax error")
	case len(args) == 2 && c.accounts.open():
		c.error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case len(args) == 2 && c.login(DefaultUser, args[1]):
		c.ok()
	case len(args) == 3 && c.login(string(args[1]), args[2]):
		c.ok()
	}
}

// login reports whether a password was right, and notes the account. It answers a wrong one with an
// error, and has the connection closed after the tenth.
func (c *conn) login(name string, password []byte) bool {
	found := c.accounts.login(name, string(password))
	if found != nil {
		c.account, c.wrong = found, 0
		return true
	}
	c.srv.wrong.Add(1)
	c.error("WRONGPASS invalid username-password pair or user is disabled.")
	if c.wrong++; c.wrong >= maxWrongAuth {
		c.closing = true
	}
	return false
}

func (c *conn) hello(args [][]byte) {
	version := c.resp
	if len(args) > 1 {
		n, ok := integer(args[1])
		if !ok {
			c.error("ERR Protocol version is not an integer or out of range")
			return
		}
		if n != 2 && n != 3 {
			c.error("NOPROTO unsupported protocol version")
			return
		}
		version = int(n)
	}
	name := c.name
	for rest := args[min(len(args), 2):]; len(rest) > 0; {
		switch {
		case equalFold(rest[0], "auth") && len(rest) >= 3:
			if !c.login(string(rest[1]), rest[2]) {
				return
			}
			rest = rest[3:]
		case equalFold(rest[0], "setname") && len(rest) >= 2:
			if !printableName(rest[1]) {
				c.error(badName)
				return
			}
			name, rest = string(rest[1]), rest[2:]
		default:
			c.error("ERR Syntax error in HELLO option '" + string(rest[0]) + "'")
			return
		}
	}
	if c.anonymous() {
		c.error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.resp, c.name = version, name
	c.pairs(7)
	c.bulk("server")
	c.bulk("redis")
	c.bulk("version")
	c.bulk(RedisVersion)
	c.bulk("proto")
	c.int(int64(version))
	c.bulk("id")
	c.int(c.id)
	c.bulk("mode")
	c.bulk("standalone")
	c.bulk("role")
	c.bulk("master")
	c.bulk("modules")
	c.array(0)
}

const badName = "ERR Client names cannot contain spaces, newlines or special characters."

// maxText bounds what a client may say about itself.
const maxText = 128

func printableName(b []byte) bool {
	for _, c := range b {
		if c < '!' || c > '~' {
			return false
		}
	}
	return len(b) <= maxText
}

// clientArity is how many arguments the subcommands of CLIENT have, as command.arity.
var clientArity = map[string]int{
	"id": 2, "getname": 2, "info": 2, "list": -2, "setname": 3, "setinfo": 4, "no-evict": 3, "no-touch": 3, "tracking": -3, "help": 2,
}

func (c *conn) client(args [][]byte) {
	var room [maxName]byte
	sub := ""
	if len(args[1]) <= maxName {
		sub = string(lower(room[:0], args[1]))
	}
	want := clientArity[sub]
	switch n := len(args); {
	case want == 0:
		c.error("ERR unknown subcommand '" + string(args[1][:min(len(args[1]), 128)]) + "'. Try CLIENT HELP.")
		return
	case n != want && (want > 0 || n < -want):
		c.error("ERR wrong number of arguments for 'client|" + sub + "' command")
		return
	}
	switch sub {
	case "id":
		c.int(c.id)
	case "getname":
		if c.name == "" {
			c.null()
		} else {
			c.bulk(c.name)
		}
	case "info", "list": // only about this connection
		c.text(c.line() + "\n")
	case "setname":
		c.setName(args[2])
	case "setinfo":
		c.setInfo(args[2], args[3])
	case "no-evict", "no-touch":
		c.onOff(args[2])
	case "tracking": // nothing that could be cached is ever sent
		c.onOff(args[2])
	case "help":
		help := []string{"CLIENT <subcommand> [<arg> ...]. Subcommands are:", "GETNAME", "ID", "INFO", "LIST", "NO-EVICT (ON|OFF)", "NO-TOUCH (ON|OFF)", "SETINFO (LIB-NAME|LIB-VER) <value>", "SETNAME <name>", "TRACKING (ON|OFF)"}
		c.array(len(help))
		for _, h := range help {
			c.simple(h)
		}
	}
}

func (c *conn) setName(name []byte) {
	if !printableName(name) {
		c.error(badName)
		return
	}
	c.name = string(name)
	c.ok()
}

func (c *conn) setInfo(what, value []byte) {
	i := 0
	switch {
	case equalFold(what, "lib-name"):
	case equalFold(what, "lib-ver"):
		i = 1
	default:
		c.error("ERR Unrecognized option '" + string(what[:min(len(what), maxText)]) + "'")
		return
	}
	if !printableName(value) {
		c.error("ERR " + strings.ToLower(string(what)) + " cannot contain spaces, newlines or special characters.")
		return
	}
	c.lib[i] = string(value)
	c.ok()
}

func (c *conn) onOff(b []byte) {
	if equalFold(b, "on") || equalFold(b, "off") {
		c.ok()
	} else {
		c.error("ERR syntax error")
	}
}

// line describes the connection as CLIENT LIST does.
func (c *conn) line() string {
	user := DefaultUser
	if c.account != nil {
		user = c.account.Name
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d db=0 user=%s lib-name=%s lib-ver=%s resp=%s",
		c.id, c.access.Client, c.net.LocalAddr(), c.name, int64(time.Since(c.since)/time.Second), user, c.lib[0], c.lib[1], strconv.Itoa(c.resp))
}
