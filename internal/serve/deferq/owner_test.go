package deferq

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// Nobody but who sent a request sees how it is.
func TestStrangersSeeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules)
		defer b.close()
		at := b.accept("ann", 0, 3)[0]
		if w := b.status("ann", at); w.Code != 200 {
			t.Errorf("its sender: %d", w.Code)
		}
		for _, who := range []string{"bob", "", "Ann"} {
			if w := b.status(who, at); w.Code != 404 || strings.Contains(w.Body.String(), "waiting") {
				t.Errorf("%q: %d %s", who, w.Code, w.Body)
			}
		}
		if w := b.status("ann", at[:len(at)-1]); w.Code != 404 {
			t.Errorf("another ID: %d", w.Code)
		}
		if w := b.status("ann", "/deferred/"); w.Code != 404 {
			t.Errorf("no ID: %d", w.Code)
		}
	})
}

// A client without any identity is known by its address.
func TestOwnerByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, strings.NewReplacer("per: user", "per: everyone", "identify:\n  user: client header X-User\n", "").Replace(testRules))
		defer b.close()
		at := b.accept("ann", 0, 3)[0]
		if w := b.status("bob", at); w.Code != 200 { // the same address, and no other identity is known
			t.Errorf("%d", w.Code)
		}
	})
}

// Clients that do not read what they are told keep nobody else from asking.
func TestSlowReadersHoldNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules)
		defer b.close()
		at := b.accept("ann", 0, 3)[0]
		read := make(chan struct{})
		for range 2 * maxWatching {
			r := httptest.NewRequest("GET", at, nil)
			r.Header.Set("X-User", "ann")
			go b.queue.ServeHTTP(stuck{httptest.NewRecorder(), read}, r)
			synctest.Wait()
		}
		if w := b.status("ann", at); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		close(read)
	})
}

// stuck is a client that reads nothing yet.
type stuck struct {
	http.ResponseWriter
	read <-chan struct{}
}

func (s stuck) Write(p []byte) (int, error) {
	<-s.read
	return s.ResponseWriter.Write(p)
}
