package browser

import (
	"flag"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

var shots = flag.String("shots", "", "write a picture of every step of TestWalk into this folder")

// TestWalk is the same night for somebody who has nothing but a phone, in the dark, or a mouse: a customer is
// refused and is let through, somebody who abuses the service is banned, both are undone, and
// a slip is opened. Every press is one that a hand can do. Two nodes share a Redis, and what is ordered on one
// holds on both.
func TestWalk(t *testing.T) {
	for name, c := range map[string]struct {
		width  int64
		scheme string
		touch  bool
	}{
		"phone": {390, "dark", true},
		"mouse": {1280, "light", false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := startTwo(t, testdep.Redis(t).Addr, "--demo", "--slips.key_file="+slipKey(t))
			for _, s := range []*server{a, b} {
				for _, user := range []string{"acme", "mallory"} { // for more than they may
					s.keepAsking(user, 250*time.Millisecond, "/search")
				}
			}
			p := open(t, a)
			p.look(c.width, 844, c.scheme)
			walk{newHand(p, c.touch), a, b, name}.through()
		})
	}
}

// slipKey is a file with a key that two servers share.
func slipKey(t *testing.T) string {
	t.Helper()
	s := server{t: t, dir: t.TempDir()}
	s.write("slips", "0123456789abcdef0123456789abcdef\n")
	return filepath.Join(s.dir, "slips")
}

// walk is a hand at the dashboard of one of two servers.
type walk struct {
	hand
	a, b *server
	name string
}

// both waits until a search of a user gets a status on both servers.
func (w walk) both(user string, status int) {
	w.t.Helper()
	for _, s := range []*server{w.a, w.b} {
		w.answered(s, user, status)
	}
}

// step checks what is seen now.
func (w walk) step(name string) {
	w.t.Helper()
	w.fits(w.name + ", " + name)
	w.accessible(w.name + ", " + name)
	if *shots != "" {
		w.shoot(filepath.Join(*shots, w.name+"-"+name+".png"))
	}
}

func (w walk) through() {
	w.arrive()
	w.letThrough()
	w.ban()
	w.openSlip()
	w.tap("Audit")
	for _, want := range []string{"override", "import until noon", "ban", "scrapes", "end", "it is done", "it was their partner", "why"} {
		w.until("main table", want)
	}
	w.step("16-audit")
	w.tap("Fleet")
	w.until("main", "Every node runs the newest rules.")
	w.until("main table", "web-2")
	w.step("17-fleet")
	w.tap("Sign out")
	w.until("main", "Your token")
	w.checkPeace(w.a)
}

// arrive finds out who is limited, and why.
func (w walk) arrive() {
	w.t.Helper()
	w.run(chromedp.Navigate(w.at + "/"))
	w.write("Your token", aliceToken)
	w.step("01-sign-in")
	w.tap("Sign in")
	w.until(".verdict", "All well")
	w.until("main", "2 of 2 nodes answered")
	w.wait("somebody is refused", func() bool { return w.text("#refused") != "0" && strings.Contains(w.text("main"), "search") })
	w.step("02-overview")
	w.tap("See who is refused by search")
	w.until("main table", "user=acme")
	w.until("main table", "user=mallory")
	w.step("03-offenders")
	w.tap("user=acme")
	w.until("main table", "10/10s sliding_log")
	w.until("main table", "refused")
	w.step("04-key")
}

// letThrough lets the customer through for an hour, and undoes it.
func (w walk) letThrough() {
	w.t.Helper()
	w.tap("Override")
	w.tap("10 times")
	w.write("Reason, for the audit log", "import until noon")
	w.step("05-override")
	w.tap("Show effect")
	w.until(".act", "They get 100/10s under search")
	w.until(".act", "would hold on all 2 instances")
	w.step("06-effect")
	w.tap("Override now")
	w.until(".act", "Override is done")
	w.until("main", "100/10s under search, ends in ")
	w.step("07-done")
	w.both("acme", http.StatusOK)
	w.write("Reason to end it", "it is done")
	w.js("document.activeElement.blur(); 0", nil) // as a phone does that puts its keyboard away
	w.refreshed("/keys?")
	w.step("08-end")
	w.tap("End it now")
	w.until("main", "No override and no ban holds for them.")
	w.both("acme", http.StatusTooManyRequests)
	w.step("09-ended")
}

// ban bans who abuses the service, and undoes it.
func (w walk) ban() {
	w.t.Helper()
	w.tap("Offenders")
	w.tap("user=mallory")
	w.until("h1", "user=mallory")
	w.tap("Ban")
	w.write("Reason, for the audit log", "scrapes")
	w.tap("Show effect")
	w.until(".act", "Every request of theirs is refused")
	w.step("10-ban")
	w.tap("Ban now")
	w.until(".act", "Ban is done")
	w.until("main table", "banned")
	w.step("11-banned")
	w.both("mallory", http.StatusForbidden)
	w.tap("Overview")
	w.until("main", "scrapes – alice")
	w.step("12-overview-ban")
	w.tap("user=mallory")
	w.until("main table", "banned")
	w.write("Reason to end it", "it was their partner")
	w.tap("End it now")
	w.until("main", "No override and no ban holds for them.")
	w.both("mallory", http.StatusTooManyRequests)
	w.step("13-unbanned")
}

// openSlip opens what a client of the other node quotes.
func (w walk) openSlip() {
	w.t.Helper()
	slip := ""
	w.wait("there is a slip", func() bool { _, slip = w.b.send("acme", "/search"); return slip != "" })
	w.write("Find a key, or open the slip of a refusal", slip)
	w.tap("Find")
	w.until("main", "user=acme was refused by the rule search (10/10s sliding_log)")
	w.until("main", "on web-2")
	w.until("main", "by the clock of this browser")
	w.until("main", "which are in force")
	w.step("14-why")
	w.tap("Look at user=acme")
	w.until("h1", "user=acme")
	w.step("15-key-again")
}
