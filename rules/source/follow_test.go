package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/rules"
)

// What an origin publishes is in force at once, with who published it and why; the origin is
// asked by one call at a time, and closed in the end.
func TestFollowOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := revisions(3)
		s := newStand("redis://h/0#rules", all[0])
		w, err := tryFollow(t, Options{}, Layer{Origin: s})
		do(t, err)
		w.is(0, "1", 10)
		begun := time.Now()
		for _, b := range all[1:] {
			time.Sleep(time.Hour)
			s.publish(b)
			synctest.Wait()
			time.Sleep(time.Millisecond)
			w.is(0, b.Revision, int64(10*int(b.Revision[0]-'0')))
		}
		l := w.layer(0)
		if l.Name != s.name || !l.Origin || l.Author != "ann" || l.Reason != "test 3" || l.Hash != all[2].Sum() || l.Hash != w.Status().Hash ||
			l.Since.Sub(begun) != 2*time.Hour+time.Millisecond && l.Since.Sub(begun) != 2*time.Hour || l.Error != "" || l.Refused != nil || l.FromCopy || l.Behind() {
			t.Errorf("%+v", l)
		}
		if files := w.Status().Files; len(files) != 1 || files[0] != "redis://h/0#rules: rules.yaml" {
			t.Errorf("files: %q", files)
		}
		time.Sleep(2 * time.Hour)
		if age := time.Since(w.layer(0).Reached); age > 2*time.Minute {
			t.Errorf("the source answered last %s ago", age)
		}
		if n := s.asked(); n > 5*60+10 {
			t.Errorf("asked %d times in five hours", n)
		}
		w.Close()
		if !s.isClosed() || s.wasShared() {
			t.Errorf("closed: %v, several calls at once: %v", s.isClosed(), s.wasShared())
		}
	})
}

// Whatever is wrong with an origin, what is in force stays, for as long as it lasts; it is
// shown, the origin is not asked all the time, and what it publishes next is taken.
func TestOriginsFail(t *testing.T) {
	for name, c := range map[string]struct {
		destroy func(*stand)
		says    string
	}{
		"is away":       {func(s *stand) { s.err = errAway }, "connection refused"},
		"does not say":  {func(s *stand) { s.deaf = true }, "not answered within"},
		"has no files":  {func(s *stand) { s.newest = &Bundle{Edition: Edition{Revision: "8"}} }, "there are no files"},
		"leaves itself": {func(s *stand) { s.newest = text("8", limit(1)); s.newest.Files["../x"] = nil }, "not the path of a file"},
		"is too large":  {func(s *stand) { s.newest = text("8", limit(1)); s.newest.Files["x"] = make([]byte, MaxFile+1) }, "at most 16 MiB"},
		"has too much": {func(s *stand) {
			s.newest = text("8", limit(1))
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				s.newest.Files[name] = make([]byte, MaxFile)
			}
		}, "at most 64 MiB"},
		"has too many": {func(s *stand) {
			s.newest = text("8", limit(1))
			for i := range MaxFiles {
				s.newest.Files[fmt.Sprint(i)] = nil
			}
		}, "at most 1000"},
		"repeats a revision":            {func(s *stand) { s.newest = published("7-0a1b2c3d", 8, 12); s.newest.Files["x"] = nil }, "other files as revision"},
		"goes back":                     {func(s *stand) { s.newest = published("6-99999999", 8, 11) }, "went back from revision 7-0a1b2c3d to 6-99999999"},
		"goes back, and knows no time":  {func(s *stand) { s.newest = bundle("3", 8) }, "went back"},
		"answers nothing all the time":  {func(s *stand) { s.newest = nil }, ""},
		"answers the same all the time": {func(s *stand) { s.newest = published("again", 7, 12) }, ""},
		"is away, then repeats":         {func(s *stand) { s.err = errAway }, "connection refused"},
		"has rules that are bad":        {func(s *stand) { s.newest = text("8", "version: 1\nrules: [{ nmae: x }]\n") }, ""},
		"has rules that are not there":  {func(s *stand) { s.newest = text("8", limit(1)); s.newest.Main = "other.yaml" }, ""},
		"has rules that are not UTF-8":  {func(s *stand) { s.newest = text("8", "version: 1\n\xff\xfe") }, ""},
		"has an empty file":             {func(s *stand) { s.newest = text("8", "") }, ""},
		"has only a file that is no rule": {func(s *stand) {
			s.newest = &Bundle{Edition: Edition{Revision: "8"}, Files: map[string][]byte{"README": nil}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				was := published("7-0a1b2c3d", 7, 12)
				if name == "answers the same all the time" {
					was = published("again", 7, 12)
				}
				s := newStand("o", was)
				w, err := tryFollow(t, Options{}, Layer{Origin: s})
				do(t, err)
				defer w.Close()
				time.Sleep(time.Minute)
				before := s.asked()
				s.set(c.destroy)
				time.Sleep(time.Hour)
				w.is(0, was.Revision, 7)
				if w.reloads.Load() != 0 {
					t.Error("other rules were put into force")
				}
				l := w.layer(0)
				switch {
				case c.says != "" && (!strings.Contains(l.Error, c.says) || !l.Behind() || l.ErrorSince.IsZero() || l.Refused != nil || w.failures.Load() > 0):
					t.Errorf("%+v, want an error with %q", l, c.says)
				case strings.Contains(name, "rules") || strings.Contains(name, "file that") || strings.Contains(name, "empty"):
					if l.Error != "" || l.Refused == nil || l.Refused.Revision != "8" || !l.Behind() || w.failures.Load() != 1 {
						t.Errorf("%+v, %d failures; want a refused revision", l, w.failures.Load())
					}
				case c.says == "" && (l.Error != "" || l.Refused != nil || l.Behind()):
					t.Errorf("%+v, and nothing is wrong", l)
				}
				most := 3600/5 + 60 // half of the longest pause, and the first ones
				if strings.Contains(name, "same all the time") {
					most = 5*3600 + 1 // it is asked for news, and has some: itself; both ends of the hour count
				}
				if n := s.asked() - before; n > most {
					t.Errorf("it was asked %d times in an hour", n)
				}
				s.publish(published("9-00000000", 9, 13))
				time.Sleep(lastRetry)
				w.is(0, "9-00000000", 9)
				if l := w.layer(0); l.Error != "" || l.Refused != nil || l.Behind() {
					t.Errorf("afterwards: %+v", l)
				}
				if s.wasShared() {
					t.Error("it was asked twice at once")
				}
			})
		})
	}
}

// A lower revision that was published later is a new state of a source that has lost its
// count, not an old one.
func TestRevisionsThatBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand("o", published("7-0a1b2c3d", 7, 12))
		w, err := tryFollow(t, Options{}, Layer{Origin: s})
		do(t, err)
		defer w.Close()
		s.publish(published("1-ffffffff", 1, 13))
		time.Sleep(time.Second)
		w.is(0, "1-ffffffff", 1)
		s.publish(published("1-ffffffff", 2, 14)) // and once more from the start
		time.Sleep(time.Second)
		w.is(0, "1-ffffffff", 2)
		// Words are not compared.
		s.publish(published("a", 3, 1))
		time.Sleep(time.Second)
		w.is(0, "a", 3)
	})
}

// Two machines refuse the same bad set with the same words, whatever else they have.
func TestRefusalsAreTheSameEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := newStand("o", bundle("1", 1)), newStand("o", bundle("1", 1))
		a, err := tryFollow(t, Options{Copy: t.TempDir()}, Layer{Origin: s})
		do(t, err)
		defer a.Close()
		time.Sleep(time.Hour)
		b, err := tryFollow(t, Options{}, Layer{Origin: other})
		do(t, err)
		defer b.Close()
		bad := text("2", "version: 1\ninclude: gone.yaml\nlists: { l: file /etc/passwd }\nrules: [{ nmae: x }]\n")
		s.publish(bad)
		time.Sleep(time.Minute)
		other.publish(bad)
		time.Sleep(time.Minute)
		x, y := a.layer(0).Refused, b.layer(0).Refused
		if x == nil || y == nil || x.Message != y.Message || x.Revision != "2" || len(x.Problems) < 3 || a.Status().LastError != x.Message {
			t.Errorf("%+v\n%+v", x, y)
		}
		for _, want := range []string{"o: rules.yaml:2:", "o: rules.yaml:3:", "o: rules.yaml:4:"} {
			if !strings.Contains(x.Message, want) {
				t.Errorf("the message has no %s:\n%s", want, x.Message)
			}
		}
		a.is(0, "1", 1)
		b.is(0, "1", 1)
		since := x.Since
		a.Reload()
		time.Sleep(time.Minute)
		if r := a.layer(0).Refused; r == nil || !r.Since.Equal(since) {
			t.Errorf("after a reload it is refused since %v, not %v", r, since)
		}
		// The former content under another name ends it, and nothing is reloaded.
		again := bundle("3", 1)
		s.publish(again)
		time.Sleep(time.Second)
		a.is(0, "3", 1)
		if l := a.layer(0); l.Refused != nil || a.Status().LastError != "" || a.reloads.Load() != 0 {
			t.Errorf("%+v, %d reloads", l, a.reloads.Load())
		}
	})
}

// Somebody who tells to reload is obeyed at once, also while the source is left alone after
// failures; and what the source has then is taken, even if it is older.
func TestReloadAsksOrigins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand("o", bundle("7", 7))
		w, err := tryFollow(t, Options{}, Layer{Origin: s})
		do(t, err)
		defer w.Close()
		s.set(func(s *stand) { s.err = errAway })
		time.Sleep(time.Hour) // the pauses are long by now
		s.mu.Lock()
		s.err, s.newest = nil, bundle("5", 5) // nobody is told
		s.mu.Unlock()
		w.Reload()
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		w.is(0, "5", 5)
		// While a call waits for news.
		time.Sleep(10 * time.Second)
		s.mu.Lock()
		s.newest = bundle("4", 4)
		s.mu.Unlock()
		w.Reload()
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		w.is(0, "4", 4)
		if l := w.layer(0); l.Error != "" || l.Behind() {
			t.Errorf("%+v", l)
		}
		calls := s.asked()
		time.Sleep(time.Minute)
		if n := s.asked() - calls; n > 3 {
			t.Errorf("asked %d times afterwards", n)
		}
	})
}

// A source that is killed and comes back changes nothing else, however often.
func TestOriginsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand("o", bundle("1", 1))
		w, err := tryFollow(t, Options{}, Layer{Origin: s})
		do(t, err)
		defer w.Close()
		for i := range 20 {
			s.set(func(s *stand) { s.err = errAway })
			time.Sleep(time.Duration(i) * time.Second)
			s.set(func(s *stand) { s.err = nil })
			time.Sleep(lastRetry + time.Minute)
			w.is(0, "1", 1)
			if l := w.layer(0); l.Error != "" || l.Behind() || w.reloads.Load() != 0 || w.failures.Load() != 0 {
				t.Fatalf("after %d times: %+v", i+1, l)
			}
		}
	})
}

// An origin that does not end its call does not keep anybody from ending.
func TestCloseLeavesDeafOrigins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand("o", bundle("1", 1))
		w, err := tryFollow(t, Options{}, Layer{Origin: s})
		do(t, err)
		s.set(func(s *stand) { s.deaf = true })
		time.Sleep(time.Second)
		begun := time.Now()
		w.Close()
		if took := time.Since(begun); took > grace || !s.isClosed() {
			t.Errorf("it took %s, closed: %v", took, s.isClosed())
		}
		s.set(func(s *stand) { s.deaf = false; s.err = errAway }) // or the bubble does not end
	})
}

// There are no rules that a start could begin with: the error says so, and nothing is running.
func TestFollowWithoutAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand("redis://h", nil)
		s.err = errAway
		begun := time.Now()
		_, err := tryFollow(t, Options{StartTimeout: 3 * time.Second}, Layer{Origin: s})
		if err == nil || !strings.Contains(err.Error(), "redis://h") || !errors.Is(err, errAway) || !s.isClosed() || time.Since(begun) != 3*time.Second {
			t.Errorf("%v after %s, closed: %v", err, time.Since(begun), s.isClosed())
		}
		var load *rules.LoadError
		s = newStand("redis://h", text("1", "rules: ["))
		if _, err = tryFollow(t, Options{}, Layer{Origin: s}); !errors.As(err, &load) || !s.isClosed() {
			t.Errorf("%v, closed: %v", err, s.isClosed())
		}
	})
}
