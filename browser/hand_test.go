package browser

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// hand points at things on a page as a person does: with a mouse, or with a finger.
type hand struct {
	*tab
	touch bool
}

// newHand returns one. A finger is on a device that has no mouse.
func newHand(p *tab, touch bool) hand {
	if touch {
		p.run(emulation.SetTouchEmulationEnabled(true))
	}
	return hand{p, touch}
}

// leastTarget is how many pixels wide and high a thing has to be so that people hit it (WCAG 2.5.8).
const leastTarget = 24

// aim finds an element, scrolls until it is seen, and takes note of the next click. One that lands
// elsewhere, since the page has moved meanwhile, has no effect.
const aim = `((e) => {
	if (!e) return null;
	const seen = () => e.getClientRects()[0];
	if (!seen()) return null;
	if (seen().top < 0 || seen().bottom > innerHeight) e.scrollIntoView({ block: "center" });
	const { left, top, width, height } = seen();
	window.landed = "";
	if (!window.aimed) addEventListener("click", (click) => {
		landed = aimed.contains(click.target) ? "hit" : "missed";
		if (landed === "missed") { click.preventDefault(); click.stopImmediatePropagation(); }
	}, true);
	window.aimed = e;
	return { X: left + width / 2, Y: top + height / 2, Width: width, Height: height };
})(%s)`

// pointAt presses an element, which an expression finds.
func (h hand) pointAt(what, find string) {
	h.t.Helper()
	h.wait("one can press "+what, func() bool {
		var at *struct{ X, Y, Width, Height float64 }
		if h.js(fmt.Sprintf(aim, find), &at); at == nil {
			return false
		}
		if at.Width < leastTarget || at.Height < leastTarget {
			h.t.Errorf("%s is %.0f by %.0f pixels, too small to hit", what, at.Width, at.Height)
		}
		h.down(at.X, at.Y)
		var landed string
		testdep.Await(time.Second, func() bool {
			h.js("window.landed || (document.readyState === 'loading' ? 'hit' : '')", &landed)
			return landed != ""
		})
		return landed == "hit"
	})
}

// down presses a point of the window.
func (h hand) down(x, y float64) {
	h.t.Helper()
	if !h.touch {
		h.run(chromedp.MouseClickXY(x, y))
		return
	}
	h.run(chromedp.ActionFunc(func(ctx context.Context) error {
		if err := input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: x, Y: y}}).Do(ctx); err != nil {
			return err
		}
		return input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}).Do(ctx)
	}))
}

// tap presses the button or link that has this text, or this name for screen readers.
func (h hand) tap(name string) {
	h.t.Helper()
	h.pointAt(name, fmt.Sprintf(`[...document.querySelectorAll("button, a")].find((e) => (e.ariaLabel || e.textContent.trim()) === %q && !e.disabled && e.checkVisibility())`, name))
}

// write presses the field that has this label, and types.
func (h hand) write(label, text string) {
	h.t.Helper()
	field := fmt.Sprintf(`[...document.querySelectorAll("label")].filter((l) => l.textContent.trim().startsWith(%q) && l.control && l.control.checkVisibility()).map((l) => l.control)[0]`, label)
	h.pointAt(label, field)
	h.wait(label+" has the focus", func() bool {
		var has bool
		h.js("document.activeElement === "+field, &has)
		return has
	})
	h.run(input.InsertText(text))
}
