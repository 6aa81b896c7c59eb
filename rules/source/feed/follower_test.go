package feed

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func askAs(f *Feed, t *testing.T, who Report, headers ...string) {
	for name, values := range who.Header() {
		headers = append(headers, name, values[0])
	}
	ask(f, t.Context(), "GET", headers...)
}

// The list has who follows, what they apply, what they refuse and why.
func TestFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		set(t, f, bundle("1", "a"))
		since := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
		good := Report{Node: "web-1", Version: "1.2", Hash: "hash-1", Revision: "1", Since: since, Rules: 3, Instances: 5}
		bad := Report{Node: "web-2", Hash: "hash-0", Revision: "0", Refused: "1", Error: "load rules:\n  rules.yaml:1:1: no rules\n\n  é\x1b[31m"}
		askAs(f, t, bad)
		askAs(f, t, good)
		ask(f, t.Context(), "GET") // nobody
		all := f.Followers()
		if len(all) != 2 {
			t.Fatalf("%+v", all)
		}
		if one := all[0]; one.Report != good || one.Behind || one.Waiting || !one.Seen.Equal(time.Now()) || one.Address == "" {
			t.Errorf("%+v", one)
		}
		if one := all[1]; one.Node != "web-2" || !one.Behind || one.Refused != "1" || one.Error != "load rules: rules.yaml:1:1: no rules é[31m" {
			t.Errorf("%+v", one)
		}
		etag := ask(f, t.Context(), "GET").Header().Get("ETag")
		go askAs(f, t, good, "If-None-Match", etag, "Prefer", "wait=60")
		synctest.Wait()
		if one := f.Followers()[0]; !one.Waiting {
			t.Errorf("%+v", one)
		}
		set(t, f, bundle("2", "b"))
		synctest.Wait()
		if one := f.Followers()[0]; one.Waiting || !one.Behind {
			t.Errorf("%+v", one)
		}
		time.Sleep(forgetAfter + time.Second)
		if all := f.Followers(); len(all) != 0 {
			t.Errorf("%+v are still listed", all)
		}
	})
}

// The list is bounded, in number and in length, whatever is sent.
func TestBoundsOfFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		set(t, f, bundle("1", "a"))
		for i := range maxFollowers + 100 {
			ask(f, t.Context(), "GET", nodeHeader, fmt.Sprint("node-", i), errorHeader, strings.Repeat("é", 1000))
		}
		all := f.Followers()
		if len(all) != maxFollowers || len(all[0].Error) > maxText {
			t.Errorf("%d followers, an error of %d bytes", len(all), len(all[0].Error))
		}
		time.Sleep(forgetAfter + time.Second)
		ask(f, t.Context(), "GET", nodeHeader, "late")
		if all := f.Followers(); len(all) != 1 || all[0].Node != "late" {
			t.Errorf("%d followers", len(all))
		}
	})
}

// A request that begins while the list is full is not counted when it ends: the follower may have been
// listed in between by another request.
func TestFollowerOfAFullList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		set(t, f, bundle("1", "a"))
		etag := ask(f, t.Context(), "GET").Header().Get("ETag")
		for i := range maxFollowers {
			ask(f, t.Context(), "GET", nodeHeader, fmt.Sprint("node-", i))
		}
		wait := func(seconds int) {
			go ask(f, t.Context(), "GET", nodeHeader, "late", "If-None-Match", etag, "Prefer", fmt.Sprint("wait=", seconds))
			synctest.Wait()
		}
		late := func(want string) {
			t.Helper()
			got := "not listed"
			for _, one := range f.Followers() {
				if one.Node == "late" {
					got = fmt.Sprintf("listed, waiting: %t", one.Waiting)
				}
			}
			if got != want {
				t.Errorf("the late one is %s, want %s", got, want)
			}
		}
		time.Sleep(forgetAfter - 100*time.Second)
		wait(200)
		late("not listed")
		time.Sleep(101 * time.Second) // the others are forgotten
		wait(200)
		late("listed, waiting: true")
		time.Sleep(100 * time.Second)
		late("listed, waiting: true") // the first request is over
		time.Sleep(101 * time.Second)
		late("listed, waiting: false")
		time.Sleep(forgetAfter + time.Second)
		late("not listed")
		if n := len(f.followers); n != 0 {
			t.Errorf("%d places are still taken", n)
		}
	})
}
