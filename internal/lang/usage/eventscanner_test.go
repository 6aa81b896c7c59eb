package usage

import (
	"slices"
	"strings"
	"testing"
)

// eventData is the data of the events in text, read in parts of n bytes.
func eventData(text string, n int) (all []string) {
	e := &eventScanner{inspect: func(data []byte) { all = append(all, string(data)) }}
	for text != "" {
		part := text[:min(n, len(text))]
		e.scan([]byte(part))
		text = text[len(part):]
	}
	e.end()
	return all
}

func TestEvents(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		for n := 1; n <= len(text); n++ {
			if got := eventData(text, n); !slices.Equal(got, want) {
				t.Errorf("%.100q by %d bytes: %.100q, want %.100q", text, n, got, want)
				return
			}
			if len(text) > 1000 {
				n += n * 10
			}
		}
	}
	f("data: a\n\n", "a")
	f("data:a\n\ndata:  b\n\n", "a", " b")
	f("data: a\r\n\r\ndata: b\r\n\r\n", "a", "b")
	f("data: a\r\rdata: b\r\r", "a", "b")
	f("data: a\ndata: b\n\n", "a\nb")
	f("data\n\n", "")
	f("data: a", "a")
	f(": comment\nevent: data\nid: 1\ndatabase: x\n\n")
	f("\n\n\n")
	f("data: [DONE]\n\n", "[DONE]")
	long := strings.Repeat("x", maxEvent)
	f("data: "+long+"\n\ndata: b\n\n", "b")
	f("data: "+long[:maxEvent-10]+"\n\ndata: b\n\n", long[:maxEvent-10], "b")
	f("data: "+long[:maxEvent-10]+"\ndata: "+long[:20]+"\n\ndata: b\n\n", "b")
}

func TestParseCost(t *testing.T) {
	f := func(s string, want int64, ok bool) {
		t.Helper()
		if got, gotOK := parseCost(s); gotOK != ok || ok && got != want {
			t.Errorf("%s: %d, %v, want %d, %v", s, got, gotOK, want, ok)
		}
	}
	f("37", 37, true)
	f("0", 0, true)
	f("36.1", 37, true)
	f("99999999999999999999", 1<<63-1, true)
	f("-1", 0, false)
	f("-0.5", 0, false)
	f("NaN", 0, false)
	f("many", 0, false)
	f("", 0, false)
}

// A document that is too long to be kept is not, and nobody waits for it.
func TestDocument(t *testing.T) {
	f := func(size int, want bool) {
		t.Helper()
		seen := false
		d := &jsonScanner{inspect: func([]byte) { seen = true }}
		for range size / 1000 {
			d.scan(make([]byte, 1000))
		}
		if len(d.text) > maxDocument {
			t.Errorf("%d bytes are kept", len(d.text))
		}
		d.end()
		d.end()
		if seen != want || d.text != nil {
			t.Errorf("%d bytes: looked at %v, want %v", size, seen, want)
		}
	}
	f(1000, true)
	f(maxDocument, true)
	f(2*maxDocument, false)
}
