package admin

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// No profile takes longer than a minute, however the seconds are spelt.
func TestProfilesAreShort(t *testing.T) {
	d := newDesk(t, "rules: []\n", nil)
	for _, path := range []string{"profile", "trace", "heap", "goroutine", "allocs", "mutex"} {
		for _, seconds := range []string{"61", "3600", "1e9", "Inf", "NaN", "-1", "60.5", "0x100", "9223372036854775807", "x", "61&seconds=1"} {
			if w := d.ask(http.MethodGet, "/debug/pprof/"+path+"?seconds="+seconds, ""); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "from 0 to 60") {
				t.Errorf("%s of %s seconds: %d %s", path, seconds, w.Code, w.Body)
			}
		}
		if w := d.ask(http.MethodPost, "/debug/pprof/"+path, "seconds=3600", header("Content-Type", "application/x-www-form-urlencoded")); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s by POST: %d", path, w.Code)
		}
	}
}

// One profile that takes time runs at once, and ends with who asked for it.
func TestOneProfileAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, "rules: []\n", nil)
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan int)
		go func() {
			w := d.ask(http.MethodGet, "/debug/pprof/goroutine?seconds=60", "", func(r *http.Request) { *r = *r.WithContext(ctx) })
			first <- w.Code
		}()
		time.Sleep(time.Second)
		for _, path := range []string{"profile?seconds=1", "trace?seconds=1", "heap?seconds=1", "profile", "trace"} {
			if w := d.ask(http.MethodGet, "/debug/pprof/"+path, ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("%s beside another: %d %s", path, w.Code, w.Body)
			}
		}
		if w := d.ask(http.MethodGet, "/debug/pprof/goroutine?debug=1", ""); w.Code != http.StatusOK {
			t.Errorf("what takes no time: %d", w.Code)
		}
		leave()
		<-first
		if w := d.ask(http.MethodGet, "/debug/pprof/goroutine?seconds=1", ""); w.Code != http.StatusOK {
			t.Errorf("afterwards: %d %s", w.Code, w.Body)
		}
	})
}
