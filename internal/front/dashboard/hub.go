package dashboard

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Look returns the current state, as a function from a topic to JSON for its pages: "" is the first
// page, anything else the page of that rule.
type Look func(ctx context.Context) (show func(topic string) []byte)

// hub sends the result of each Look to all pages.
type hub struct {
	o    Options
	done chan struct{}
	wake chan struct{} // has an element when a page was opened

	mu     sync.Mutex
	closed bool                 // under mu
	pages  map[*viewer]struct{} // under mu
	shown  map[string][]byte    // by topic, of the last look; under mu
	at     time.Time            // of that; under mu
	show   func(string) []byte  // of that; under mu
}

// viewer is an open page.
type viewer struct {
	topic string
	next  chan []byte // the newest event that was not sent yet
}

func newHub(o Options) *hub {
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	if o.Pages == 0 {
		o.Pages = 100
	}
	h := &hub{o: o, done: make(chan struct{}), wake: make(chan struct{}, 1), pages: make(map[*viewer]struct{}), shown: make(map[string][]byte)}
	go h.run()
	return h
}

// Close ends all streams.
func (h *hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}
}

// run calls Look regularly while pages are open.
func (h *hub) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-h.done
		cancel()
	}()
	ticks := time.NewTicker(h.o.Every)
	defer ticks.Stop()
	for {
		select {
		case <-h.done:
			return
		case <-h.wake:
		case <-ticks.C:
		}
		h.mu.Lock()
		idle := len(h.pages) == 0
		h.mu.Unlock()
		if idle {
			continue
		}
		show := h.o.Look(ctx)
		h.publish(show)
	}
}

// publish sends a new state to all pages; each topic is encoded once.
func (h *hub) publish(show func(string) []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.show, h.at, h.shown = show, time.Now(), make(map[string][]byte)
	for v := range h.pages {
		v.offer(h.event(v.topic))
	}
}

// event returns the event of a topic. The caller holds h.mu.
func (h *hub) event(topic string) []byte {
	event, ok := h.shown[topic]
	if !ok {
		event = append(append([]byte("data: "), h.show(topic)...), "\n\n"...)
		h.shown[topic] = event
	}
	return event
}

// offer replaces the event that a viewer has not sent yet.
func (v *viewer) offer(event []byte) {
	select {
	case <-v.next:
	default:
	}
	v.next <- event
}

// join adds a page; nil means that too many are open.
func (h *hub) join(topic string) *viewer {
	v := &viewer{topic, make(chan []byte, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.pages) >= h.o.Pages {
		return nil
	}
	h.pages[v] = struct{}{}
	if h.show != nil && time.Since(h.at) < 2*h.o.Every {
		v.offer(h.event(topic))
	} else {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
	return v
}

func (h *hub) leave(v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pages, v)
}

// quiet is after how much silence a stream sends a comment, so that proxies do not close it.
const quiet = 15 * time.Second

// Stream sends live data to a page, while allowed returns true.
func (h *hub) Stream(w http.ResponseWriter, r *http.Request, allowed func() bool) {
	v := h.join(r.URL.Query().Get("rule"))
	if v == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer h.leave(v)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would buffer events
	control := http.NewResponseController(w)
	if _, err := w.Write([]byte("retry: 2000\n\n")); err != nil || control.Flush() != nil {
		return
	}
	silence := time.NewTicker(quiet)
	defer silence.Stop()
	for {
		var event []byte
		select {
		case <-h.done:
			return
		case <-r.Context().Done():
			return
		case event = <-v.next:
		case <-silence.C:
			event = []byte(": still here\n\n")
		}
		if !allowed() {
			return
		}
		_ = control.SetWriteDeadline(time.Now().Add(quiet)) // a page that does not read is not waited for
		if _, err := w.Write(event); err != nil || control.Flush() != nil {
			return
		}
	}
}
