package admin

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// ProgressHeader asks for progress. Until the answer is ready, a 102 response every second carries
// it, with the number of live keys that were examined.
const ProgressHeader = "Tidegate-Progress"

const progressEvery = time.Second

// progress counts what was done for a request.
type progress struct{ done atomic.Int64 }

type progressKey struct{}

// progressOf returns the progress of a request; nil if nobody asked for it.
func progressOf(ctx context.Context) *progress {
	p, _ := ctx.Value(progressKey{}).(*progress)
	return p
}

func (p *progress) add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// showProgress sends progress to the caller, if it asked for it, until end is called. Nothing else
// may be written to w meanwhile.
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
