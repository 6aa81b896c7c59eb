package recipes

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
)

func TestChi(t *testing.T) {
	testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
		router := chi.NewRouter()
		router.Use(limit)
		router.Post("/login", login)
		return router
	})
	testPathValue(t, func(limit middleware) http.Handler {
		router := chi.NewRouter()
		router.With(limit).Get("/{tenant}/report", report)
		return router
	})
}

// Middleware of chi around the limiter has writers of its own, that of Compress answers late.
func TestChiMiddleware(t *testing.T) {
	around := map[string]middleware{
		"Logger":           chimiddleware.Logger,
		"Recoverer":        chimiddleware.Recoverer,
		"Timeout":          chimiddleware.Timeout(1e10),
		"Compress":         chimiddleware.Compress(5),
		"ThrottleBacklog":  chimiddleware.ThrottleBacklog(10, 10, 1e10),
		"ClientIPFromAddr": chimiddleware.ClientIPFromRemoteAddr,
	}
	for name, outer := range around {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
				router := chi.NewRouter()
				router.Use(outer, limit)
				router.Post("/login", login)
				return router
			})
		})
	}
}
