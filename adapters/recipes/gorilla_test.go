package recipes

import (
	"net/http"
	"testing"

	"github.com/gorilla/mux"
)

func TestGorilla(t *testing.T) {
	testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
		router := mux.NewRouter()
		router.Use(mux.MiddlewareFunc(limit))
		router.HandleFunc("/login", login).Methods("POST")
		return router
	})
	testPathValue(t, func(limit middleware) http.Handler {
		router := mux.NewRouter()
		router.Use(pathValues, mux.MiddlewareFunc(limit))
		router.HandleFunc("/{tenant}/report", report)
		return router
	})
}

func pathValues(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range mux.Vars(r) {
			r.SetPathValue(name, value)
		}
		next.ServeHTTP(w, r)
	})
}
