package recipes

import (
	"net/http"
	"testing"
)

func TestServeMux(t *testing.T) {
	testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /login", login)
		handler := limit(mux)
		return handler
	})
	testPathValue(t, func(limit middleware) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("GET /{tenant}/report", limit(http.HandlerFunc(report)))
		return mux
	})
}
