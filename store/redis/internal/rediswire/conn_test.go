package rediswire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// stream is a connection whose server has said all it will.
type stream struct {
	net.Conn
	incoming io.Reader
	closed   bool
}

func (s *stream) Read(b []byte) (int, error)  { return s.incoming.Read(b) }
func (s *stream) Write(b []byte) (int, error) { return len(b), nil }
func (s *stream) Close() error                { s.closed = true; return nil }

func cmd(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func eval(tag string) string { return cmd("EVALSHA", "sha", "2", "k1", "k2", tag+"more", "x") }

func blobOf(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// read is what comes of a connection over which so much is sent, and then said.
func read(sent, incoming string, by func(io.Reader) io.Reader) (got string, err error, closed bool) {
	s := &stream{incoming: by(strings.NewReader(incoming))}
	c := Wrap(s, nil)
	if _, err := c.Write([]byte(sent)); err != nil {
		return "", err, false
	}
	b, err := io.ReadAll(c)
	return string(b), err, s.closed
}

var readers = map[string]func(io.Reader) io.Reader{
	"whole":   func(r io.Reader) io.Reader { return r },
	"by byte": iotest.OneByteReader,
	"half":    iotest.HalfReader,
}

const helloReply = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"

func TestConnPassesWhatIsInOrder(t *testing.T) {
	f := func(name, sent, incoming string) {
		t.Helper()
		for reader, by := range readers {
			if got, err, closed := read(sent, incoming, by); err != nil || closed || got != incoming {
				t.Errorf("%s, %s: got %q of %q, %v", name, reader, got, incoming, err)
			}
		}
	}
	sub := ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
	f("nothing", "", "")
	f("hello", cmd("HELLO", "3")+cmd("CLIENT", "SETINFO", "LIB-NAME", "x"), helloReply+"+OK\r\n")
	f("old hello", cmd("HELLO", "3"), "-ERR unknown command 'HELLO'\r\n")
	f("ping", cmd("PING"), "+PONG\r\n")
	f("script", eval("12345678"), blobOf("12345678 and more"))
	f("script that fails", eval("12345678"), "-ERR user_script:1: oops\r\n")
	f("scripts", eval("12345678")+eval("abcdefgh"), blobOf("12345678")+blobOf("abcdefgh!"))
	f("script without keys", cmd("EVAL", "return", "0", "12345678"), blobOf("12345678\r\n"))
	f("moved", eval("12345678"), "-MOVED 3999 127.0.0.1:6381\r\n")
	f("ask IPv6", eval("12345678"), "-ASK 3999 ::1:6381\r\n")
	f("role", cmd("ROLE"), "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n")
	f("address", cmd("SENTINEL", "get-master-addr-by-name", "m"), "*2\r\n$1\r\nh\r\n$4\r\n6379\r\n")
	f("no address", cmd("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"), "_\r\n")
	f("no address, old", cmd("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"), "*-1\r\n")
	f("page", cmd("SCAN", "0"), "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n")
	f("subscribe", cmd("SUBSCRIBE", "a", "b")+cmd("PING"),
		sub+strings.Replace(sub, "\na", "\nb", 1)+"+PONG\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n")
	f("subscription refused", cmd("SUBSCRIBE", "a", "b")+cmd("PING"), "-NOPERM no\r\n+PONG\r\n")
	f("unsubscribe", cmd("UNSUBSCRIBE", "a")+cmd("PING"), ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n+PONG\r\n")
	f("unsubscribe refused", cmd("UNSUBSCRIBE", "a")+cmd("PING"), "-NOPERM no\r\n+PONG\r\n")
	f("old subscription", cmd("HELLO", "2")+cmd("UNSUBSCRIBE", "a")+cmd("PING")+cmd("SUBSCRIBE", "a")+cmd("PING"),
		"*2\r\n$6\r\nserver\r\n$5\r\nredis\r\n"+"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n+PONG\r\n"+
			"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nm\r\n")
	f("news that nobody knows", cmd("PING"), ">2\r\n$6\r\nmoving\r\n:1\r\n+PONG\r\n")
}

func TestConnEndsWhatIsNot(t *testing.T) {
	f := func(name, sent, good, bad string) {
		t.Helper()
		for reader, by := range readers {
			got, err, closed := read(sent, good+bad, by)
			var v *Violation
			if !errors.As(err, &v) || !closed {
				t.Errorf("%s, %s: %v, closed %t; want a violation", name, reader, err, closed)
			}
			if !strings.HasPrefix(got, good) || len(got) >= len(good+bad) {
				t.Errorf("%s, %s: %q was passed on, want no more than %q and not all of %q", name, reader, got, good, bad)
			}
		}
	}
	const tag = "12345678"
	f("a reply to nothing", "", "", "+OK\r\n")
	f("an error to nothing", "", "", "-ERR max number of clients reached\r\n")
	f("a reply too many", cmd("PING"), "+PONG\r\n", "+OK\r\n")
	f("a script's reply twice", eval(tag), blobOf(tag), blobOf(tag))
	f("a reply between", eval(tag)+eval("abcdefgh"), blobOf(tag), "+OK\r\n"+blobOf("abcdefgh"))
	f("the wrong order", eval(tag)+eval("abcdefgh"), "", blobOf("abcdefgh")+blobOf(tag))
	f("a reply twice of two", eval(tag)+eval("abcdefgh"), blobOf(tag), blobOf(tag))
	f("a short reply", eval(tag), "", blobOf("1234567"))
	f("another kind", eval(tag), "", ":1\r\n")
	f("null", eval(tag), "", "$-1\r\n")
	f("a terabyte", eval(tag), "", "$999999999999\r\n")
	f("less than nothing", eval(tag), "", "$-2\r\n")
	f("an array of that many", cmd("ROLE"), "", "*2147483647\r\n")
	f("an array of less", cmd("ROLE"), "", "*-5\r\n")
	f("a map of less", cmd("HELLO", "3"), "", "%-1\r\n")
	f("an odd length", cmd("ROLE"), "", "*1x\r\n")
	f("a length to come", eval(tag), "", "$?\r\n")
	f("an array to come", cmd("ROLE"), "", "*?\r\n")
	f("depth", cmd("SCAN", "0"), "", strings.Repeat("*1\r\n", 1000))
	f("a long line", cmd("PING"), "", "+"+strings.Repeat("x", 1<<20))
	f("arrays of arrays", cmd("SCAN", "0"), "", "*60000\r\n"+strings.Repeat("*60000\r\n", 3))
	f("attributes", cmd("PING"), "", "|1\r\n+a\r\n+b\r\n+PONG\r\n")
	f("a bare newline", cmd("PING"), "", "+PONG\n")
	f("a blob that is longer", eval(tag), "", "$8\r\n"+tag+"9\r\n")
	f("a blob that is shorter", eval(tag), "", "$10\r\n"+tag+"\r\n+PONG\r\n")
	f("another word", cmd("PING"), "", "+OK\r\n")
	f("queued", cmd("SUBSCRIBE", "a"), "", "-QUEUED\r\n")
	f("no role", cmd("ROLE"), "", "*0\r\n")
	f("an odd role", cmd("ROLE"), "", "*1\r\n:1\r\n")
	f("half an address", cmd("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"), "", "*1\r\n$1\r\nh\r\n")
	f("moved to nowhere", eval(tag), "", "-MOVED\r\n")
	f("ask nobody", eval(tag), "", "-ASK 1\r\n")
	f("moved to no port", eval(tag), "", "-MOVED 1 host:none\r\n")
	f("redirected to nowhere", eval(tag), "", "-REDIRECT\r\n")
	f("subscribed to nothing", "", "", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
	f("subscribed instead", cmd("PING"), "", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
	f("a message to nobody", cmd("PING"), "", ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n")
	f("a push inside", cmd("ROLE"), "", "*2\r\n$6\r\nmaster\r\n>2\r\n+a\r\n+b\r\n")
	f("news of Sentinel", cmd("SUBSCRIBE", "+sentinel"), "", ">3\r\n$7\r\nmessage\r\n$9\r\n+sentinel\r\n$1\r\nx\r\n")
	f("an empty push", cmd("PING"), "", ">0\r\n")
	f("not unsubscribed", cmd("UNSUBSCRIBE", "a")+cmd("PING"), "", "-LOADING\r\n")
	f("not unsubscribed either", cmd("UNSUBSCRIBE", "a")+cmd("PING"), "-ERR no\r\n", "-ERR no\r\n")
	f("HTTP", cmd("HELLO", "3"), "", "HTTP/1.1 400 Bad Request\r\n\r\n")
	f("TLS", cmd("HELLO", "3"), "", "\x15\x03\x01\x00\x02\x02\x46")
}

// The error says what is wrong with a value, and not only which value it is.
func TestViolationsSayWhatIsWrong(t *testing.T) {
	f := func(command, reply, want string) {
		t.Helper()
		_, err, _ := read(cmd(command), reply, readers["whole"])
		if want = "the connection was closed, since the server sent " + want; err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", reply, err, want)
		}
	}
	f("EXISTS", ":x\r\n", `an invalid number: "x"`)
	f("GET", "_x\r\n", `an invalid null: "x"`)
	f("ECHO", "#x\r\n", `an invalid boolean: "x"`)
	f("GET", "$-2\r\n", `a blob of an invalid length: "-2"`)
	f("ROLE", "*-5\r\n", `an array of an invalid length: "-5"`)
	f("ROLE", "*5000\r\n", `too many elements in a message: "5000"`)
	f("ROLE", strings.Repeat("*1\r\n", 9), `too many nested arrays: "1"`)
}

func TestConnTellsWhatAServerIs(t *testing.T) {
	f := func(incoming, want string) {
		t.Helper()
		_, err, _ := read(cmd("HELLO", "3"), incoming, readers["whole"])
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", incoming, err, want)
		}
	}
	f("HTTP/1.1 400 Bad Request\r\n", "it speaks HTTP")
	f("\x15\x03\x01\x00\x02\x02\x46", "use rediss://")
	f("220 mail.example.com ESMTP\r\n", "it is not Redis")
	_, err, _ := read("", "-ERR max number of clients reached\r\n", readers["whole"])
	if err == nil || !strings.Contains(err.Error(), "max number of clients") {
		t.Errorf("%v, want the server's own words", err)
	}
	_, err, _ = read(cmd("PING"), "+"+strings.Repeat("x", 60<<10)+"\r\n", readers["whole"])
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("an error of %d bytes, want a short one", len(fmt.Sprint(err)))
	}
}

// TestConnOfACommandInPieces sends commands byte by byte: they count when they are whole.
func TestConnOfACommandInPieces(t *testing.T) {
	s := &stream{}
	c := Wrap(s, nil)
	text := cmd("PING") + eval("12345678")
	for i := range len(text) {
		if _, err := c.Write([]byte(text[i : i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.wanted.all); n != 2 || string(c.wanted.all[1].tag[:]) != "12345678" {
		t.Fatalf("%d commands, %v", n, c.wanted.all)
	}
	s.incoming = strings.NewReader("+PONG\r\n" + blobOf("12345678"))
	if _, err := io.ReadAll(c); err != nil {
		t.Fatal(err)
	}
}

// FuzzConn has any bytes pass or not, whole or by the byte, the same way, and holds no
// more memory than its bounds say.
func FuzzConn(f *testing.F) {
	sent := cmd("HELLO", "3") + eval("12345678") + cmd("ROLE") + cmd("SUBSCRIBE", "a") + cmd("PING")
	f.Add([]byte(helloReply + blobOf("12345678") + "*1\r\n$6\r\nmaster\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n+PONG\r\n"))
	f.Add([]byte(helloReply + "$999999999999\r\n"))
	f.Add([]byte("-ERR max number of clients reached\r\n"))
	f.Fuzz(func(t *testing.T, incoming []byte) {
		got, err, _ := read(sent, string(incoming), readers["whole"])
		again, err2, _ := read(sent, string(incoming), readers["by byte"])
		if (err == nil) != (err2 == nil) {
			t.Fatalf("whole: %v; by the byte: %v", err, err2)
		}
		if !bytes.HasPrefix(incoming, []byte(got)) || !strings.HasPrefix(again, got) {
			t.Fatalf("%q and %q were passed on of %q", got, again, incoming)
		}
	})
}
