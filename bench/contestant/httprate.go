package contestant

import (
	"net/http"

	"github.com/go-chi/httprate"
)

// chiRate is httprate's decision as its middleware makes it. It has no verb
// without a response, so the time of setting three headers is in it.
func chiRate() Contestant {
	return Contestant{
		Name:    "go-chi/httprate, OnLimit",
		Version: "github.com/go-chi/httprate v0.16.1",
		Make: func(q Quota) func() Run {
			lim := httprate.NewRateLimiter(int(q.Events), q.Period)
			return func() Run {
				w := headerOnly{make(http.Header)}
				r := &http.Request{}
				return func(keys []string) (admitted int) {
					for _, key := range keys {
						if !lim.OnLimit(w, r, key) {
							admitted++
						}
					}
					return admitted
				}
			}
		},
	}
}

type headerOnly struct{ header http.Header }

func (w headerOnly) Header() http.Header         { return w.header }
func (w headerOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w headerOnly) WriteHeader(int)             {}
