package resp

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// RedisVersion is the version of Redis whose connection handling this is. Clients look at it
// to find out what they may send.
const RedisVersion = "7.2.0"

func (c *conn) info(args [][]byte) {
	s := c.srv
	c.count()
	st := s.Stats()
	up := time.Since(s.started)
	sections := []struct{ name, text string }{
		{"Server", fmt.Sprintf("redis_version:%s\r\ntidegate_version:%s\r\nredis_mode:standalone\r\nprocess_id:%d\r\nuptime_in_seconds:%d\r\n",
			RedisVersion, s.o.Version, os.Getpid(), int64(up/time.Second))},
		{"Clients", fmt.Sprintf("connected_clients:%d\r\n", st.Connections)},
		{"Persistence", "loading:0\r\n"},
		{"Stats", fmt.Sprintf("total_connections_received:%d\r\ntotal_commands_processed:%d\r\nrejected_passwords:%d\r\nprotocol_errors:%d\r\nstalled_connections:%d\r\nlarge_buffer_bytes:%d\r\n",
			st.Accepted, st.Commands, st.WrongAuth, st.Protocol, st.Stalled, st.LargeBytes)},
		{"Replication", "role:master\r\nconnected_slaves:0\r\n"},
		{"Cluster", "cluster_enabled:0\r\n"},
	}
	var b strings.Builder
	for _, section := range sections {
		if !wanted(args[1:], section.name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("# " + section.name + "\r\n" + section.text)
	}
	c.text(b.String())
}

func wanted(names [][]byte, section string) bool {
	for _, n := range names {
		if equalFold(n, strings.ToLower(section)) || equalFold(n, "all") || equalFold(n, "everything") || equalFold(n, "default") {
			return true
		}
	}
	return len(names) == 0
}

// config answers what redis-benchmark and redis-cli ask for.
func (c *conn) config(args [][]byte) {
	if !equalFold(args[1], "get") {
		c.error("ERR CONFIG GET is all there is: Tidegate is configured by its file, and reloads it")
		return
	}
	if len(args) < 3 {
		c.error("ERR wrong number of arguments for 'config|get' command")
		return
	}
	var found [][2]string
	for _, p := range [][2]string{{"save", ""}, {"appendonly", "no"}, {"databases", "1"}, {"maxmemory", "0"}} {
		for _, a := range args[2:] {
			if equalFold(a, p[0]) {
				found = append(found, p)
				break
			}
		}
	}
	c.pairs(len(found))
	for _, p := range found {
		c.bulk(p[0])
		c.bulk(p[1])
	}
}

func (c *conn) command(args [][]byte) {
	var named []*command
	for _, cmd := range inOrder {
		if c.srv.serves(cmd) && (len(args) < 3 || asksFor(args[2:], cmd.name)) {
			named = append(named, cmd)
		}
	}
	switch {
	case len(args) == 1:
		c.array(len(named))
		for _, cmd := range named {
			c.describe(cmd)
		}
	case equalFold(args[1], "count") && len(args) == 2:
		c.int(int64(len(named)))
	case equalFold(args[1], "list") && len(args) == 2:
		c.array(len(named))
		for _, cmd := range named {
			c.bulk(cmd.name)
		}
	case equalFold(args[1], "docs"):
		c.pairs(len(named))
		for _, cmd := range named {
			c.document(cmd)
		}
	case equalFold(args[1], "info") && len(args) == 2:
		c.command(args[:1])
	case equalFold(args[1], "info"):
		c.array(len(args) - 2)
		for _, name := range args[2:] {
			var room [maxName]byte
			if len(name) <= maxName {
				if cmd := commands[string(lower(room[:0], name))]; cmd != nil && c.srv.serves(cmd) {
					c.describe(cmd)
					continue
				}
			}
			c.nullArray()
		}
	default:
		c.error("ERR unknown subcommand or wrong number of arguments for '" + string(args[1][:min(len(args[1]), 128)]) + "'. Try COMMAND COUNT, DOCS, INFO or LIST.")
	}
}

func asksFor(names [][]byte, name string) bool {
	for _, n := range names {
		if equalFold(n, name) {
			return true
		}
	}
	return false
}

func (r *reply) nullArray() {
	if r.resp == 3 {
		r.null()
	} else {
		r.out = append(r.out, "*-1\r\n"...)
	}
}

// describe appends a command as COMMAND INFO has it.
func (c *conn) describe(cmd *command) {
	last, flag := 0, "fast"
	if cmd.key > 0 {
		last, flag = cmd.key, "write"
		if cmd.arity == -2 { // any number of them
			last = -1
		}
	}
	c.array(10)
	c.bulk(cmd.name)
	c.int(int64(cmd.arity))
	c.array(1)
	c.simple(flag)
	c.int(int64(cmd.key))
	c.int(int64(last))
	c.int(int64(min(cmd.key, 1)))
	c.array(0) // ACL categories
	c.array(0) // tips
	c.array(0) // key specifications
	c.array(0) // subcommands
}

// document appends a command as COMMAND DOCS has it.
func (c *conn) document(cmd *command) {
	c.bulk(cmd.name)
	c.pairs(4)
	c.bulk("summary")
	c.bulk(cmd.about)
	c.bulk("since")
	c.bulk("0.1.0")
	c.bulk("group")
	c.bulk(cmd.group)
	c.bulk("arguments")
	if cmd.usage == "" {
		c.array(0)
		return
	}
	c.array(1)
	c.pairs(3)
	c.bulk("name")
	c.bulk("arguments")
	c.bulk("type")
	c.bulk("string")
	c.bulk("display_text")
	c.bulk(cmd.usage)
}
