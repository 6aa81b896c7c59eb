package httpsource

import (
	"log/slog"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/source"
)

// A server that does not wait is asked again and again, and each answer counts, not only one
// with something new.
func TestUnchangedIsAnAnswer(t *testing.T) {
	for name, main := range map[string]string{
		"one file":  rule("1/second"),
		"two files": "version: 1\ninclude: [other.yaml]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := newSite(t, map[string]string{"/rules.yaml": main, "/other.yaml": rule("1/second")})
			layers := []source.Layer{{Origin: site.source("/rules.yaml")}}
			w, err := source.Follow(t.Context(), layers, source.Options{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Close)
			answers := make(map[time.Time]bool)
			now := w.Status().Layers[0]
			if !testdep.Await(20*time.Second, func() bool {
				now = w.Status().Layers[0]
				if !now.Reached.IsZero() {
					answers[now.Reached] = true
				}
				return len(answers) == 5 || now.Error != ""
			}) || now.Error != "" {
				t.Fatalf("it was asked %d times, and is said to have answered %d times: %+v", len(site.paths()), len(answers), now)
			}
		})
	}
}
