package admin

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// ProgressHeader asks for progress when a request has it. Until the answer is there, informational
// responses (102) carry it with how many live keys were looked at, every second.
const ProgressHeader = "Tidegate-Progress"

const progressEvery = time.Second

// progress counts what was done for a request.
type progress struct{ done atomic.Int64 }

type progressKey struct{}

// progressOf returns the progress of a request; nil means that nobody wants to know.
func progressOf(ctx context.Context) *progress {
	p, _ := ctx.Value(progressKey{}).(*progress)
	return p
}

func (p *progress) add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// showProgress tells the caller how far the request is until end is called, if it wants to know.
// Nobody else may use w meanwhile.
func showProgress(w http.ResponseWriter, r *http.Request) (counted *http.Request, end func()) {
	if r.Header.Get(ProgressHeader) == "" {
		return r, func() {}
	}
	p := new(progress)
	stop := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		ticks := time.NewTicker(progressEvery)
		defer ticks.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticks.C:
				w.Header().Set(ProgressHeader, strconv.FormatInt(p.done.Load(), 10))
				w.WriteHeader(http.StatusProcessing)
			}
		}
	})
	return r.WithContext(context.WithValue(r.Context(), progressKey{}, p)), func() {
		close(stop)
		telling.Wait()
		w.Header().Del(ProgressHeader)
	}
}
