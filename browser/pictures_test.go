package browser

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the screenshots of docs/dashboard.md")

// looks are the ways in which each page is looked at.
var looks = []struct {
	name   string
	width  int64
	scheme string
}{{"wide-light", 1280, "light"}, {"wide-dark", 1280, "dark"}, {"phone-light", 390, "light"}, {"phone-dark", 390, "dark"}}

// shown are the pages that are looked at, and in which looks docs/dashboard.md shows them.
var shown = []struct {
	name, hash string
	prepare    func(p *tab)
	docs       []string
}{
	{"overview", "#/", (*tab).charted, []string{"wide-light", "phone-dark"}},
	{"offenders", "#/offenders", nil, nil},
	{"key", "#/key?as=user%3Dheavy&rule=search", (*tab).previewed, []string{"wide-light", "phone-light"}},
	{"rule", "#/rule?name=orders", (*tab).charted, []string{"wide-dark"}},
	{"rules", "#/rules", (*tab).compared, []string{"wide-light"}},
	{"explain", "#/explain", nil, nil},
	{"fleet", "#/fleet", nil, nil},
	{"audit", "#/audit", nil, nil},
}

// charted waits until a chart is drawn.
func (p *tab) charted() {
	p.wait("the chart is drawn", func() bool { var n int; p.js("document.querySelectorAll('.chart').length", &n); return n > 0 })
}

// previewed asks what an override would do.
func (p *tab) previewed() {
	p.press("Override")
	p.press("10 times")
	p.fill(".act input[name=reason]", "import until noon, asked by Ann")
	p.press("Show effect")
	p.until(".act", "They get 100/10s under search")
}

// compared tries other rules.
func (p *tab) compared() {
	p.press("Discard")
	p.fill("textarea", twiceSearch)
	p.press("Try")
	p.until(".diff", "+     limits: 20/10s")
}

// pictures looks at every page in every way, and takes the screenshots of docs/dashboard.md. There are orders to see.
func (p *tab) pictures() {
	p.t.Helper()
	p.js(`Promise.all([{ kind: "override", as: { user: "ann" }, rule: "orders", limits: ["50/second"], for: "4h", reason: "import until noon, asked by Ann" },
		{ kind: "ban", as: { user: "mallory" }, for: "1d", reason: "scrapes" }].map((order) => fetch("/measures", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(order) }).then((r) => r.status)))`, nil)
	for _, is := range shown {
		for _, look := range looks {
			p.look(look.width, 900, look.scheme)
			p.goTo("#/why")
			p.until("main", "Paste it here")
			p.goTo(is.hash)
			p.wait("the page is there", func() bool {
				return p.text("main h1, main .verdict") != "" && !strings.Contains(p.text("main"), "Paste it here")
			})
			if is.prepare != nil {
				is.prepare(p)
			}
			p.fits(is.name + " " + look.name)
			p.accessible(is.name + " " + look.name)
			if *update && slices.Contains(is.docs, look.name) {
				p.shoot(filepath.Join("..", "docs", "img", pictureOf(is.name, look.name)))
			}
			if *shots != "" {
				p.shoot(filepath.Join(*shots, pictureOf(is.name, look.name)))
			}
		}
	}
	p.look(1280, 900, "light")
}

func pictureOf(name, look string) string { return "dashboard-" + name + "-" + look + ".png" }

// docs/dashboard.md shows the pictures that -update takes, and there are no others.
func TestPicturesOfDocs(t *testing.T) {
	var taken []string
	for _, is := range shown {
		for _, look := range is.docs {
			taken = append(taken, pictureOf(is.name, look))
		}
	}
	text, err := os.ReadFile("../docs/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	var inDocs []string
	for _, found := range regexp.MustCompile(`!\[[^\]]+\]\(img/([^)]+)\)`).FindAllSubmatch(text, -1) {
		inDocs = append(inDocs, string(found[1]))
	}
	files, err := filepath.Glob("../docs/img/dashboard-*.png")
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	slices.Sort(taken)
	slices.Sort(inDocs)
	if !slices.Equal(taken, inDocs) || !slices.Equal(taken, files) {
		t.Errorf("-update takes\n%v\nthe page shows\n%v\nthe folder has\n%v", taken, inDocs, files)
	}
}

// shoot writes a screenshot of the whole page.
func (p *tab) shoot(file string) {
	p.t.Helper()
	var picture []byte
	p.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		_, _, _, _, _, size, err := page.GetLayoutMetrics().Do(ctx)
		if err != nil {
			return err
		}
		picture, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithClip(&page.Viewport{Width: size.Width, Height: min(size.Height, 2000), Scale: 1}).Do(ctx)
		return err
	}))
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
