package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
)

func TestReady(t *testing.T) {
	var drains, down error
	d := newDesk(t, few, func(o *Options) {
		o.Ready = []func() error{func() error { return drains }, func() error { return down }}
	})
	f := func(status int, want string) {
		t.Helper()
		w := d.ask("GET", "/readyz", "")
		if got := strings.Join(strings.Fields(w.Body.String()), " "); w.Code != status || got != want {
			t.Errorf("got %d %s, want %d %s", w.Code, got, status, want)
		}
		if w := d.ask("GET", "/healthz", ""); w.Code != 200 {
			t.Errorf("not alive: %d", w.Code)
		}
	}
	f(200, `{ "ready": true }`)
	down = errors.New("all 2 upstreams are down")
	f(503, `{ "ready": false, "reasons": [ "all 2 upstreams are down" ] }`)
	drains = errors.New("draining")
	f(503, `{ "ready": false, "reasons": [ "draining", "all 2 upstreams are down" ] }`)
	drains, down = nil, nil
	d.rules.status.LastError = "load rules secret.yaml: …"
	f(200, `{ "ready": true, "warnings": [ "the rules in the files do not load, those loaded before are in force; see /rules" ] }`)
}

func TestHealth(t *testing.T) {
	since := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	is := Health{Status: "ok", Since: since, Instances: 3}
	d := newDesk(t, few, func(o *Options) { o.Health = func() Health { return is } })
	f := func(path, want string) {
		t.Helper()
		w := d.ask("GET", path, "")
		if got := strings.Join(strings.Fields(w.Body.String()), " "); w.Code != 200 || got != want {
			t.Errorf("got %d %s, want 200 %s", w.Code, got, want)
		}
	}
	f("/healthz", `{ "alive": true, "status": "ok", "since": "2026-11-15T12:00:00Z", "instances": 3 }`)
	f("/readyz", `{ "ready": true }`)
	is.Status, is.Why = "degraded", "connection refused"
	f("/healthz", `{ "alive": true, "status": "degraded", "since": "2026-11-15T12:00:00Z", "why": "connection refused", "instances": 3 }`)
	f("/readyz", `{ "ready": true, "warnings": [ "the store is degraded; see /healthz" ] }`)
	d = newDesk(t, few, nil)
	f("/healthz", `{ "alive": true, "status": "ok" }`)
}

func TestRules(t *testing.T) {
	d := newDesk(t, few, nil)
	loaded := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	d.rules.status.LoadedAt, d.rules.status.Files, d.rules.status.Hash, d.rules.status.Reloads = loaded, []string{"rules.yaml"}, "abc", 3
	type shown struct {
		ruleSet
		Problems []struct{ Message string } `json:"problems"`
	}
	get := func() (is shown) {
		w := d.ask("GET", "/rules", "")
		if err := json.Unmarshal(w.Body.Bytes(), &is); err != nil || w.Code != 200 {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		return is
	}
	is := get()
	if fmt.Sprint(is.Rules, is.Files) != "[api] [rules.yaml]" || !is.Current || is.Error != "" || is.Reloads != 3 || !is.LoadedAt.Equal(loaded) {
		t.Errorf("got %+v", is)
	}
	d.rules.status.LastError, d.rules.status.Failed, d.rules.status.Since = "load rules: all wrong", 1, loaded.Add(time.Hour)
	d.rules.status.Problems = diag.List{{Message: "unknown field `limit`"}}
	is = get()
	if is.Current || is.Failed != 1 || is.Error != "load rules: all wrong" || len(is.Problems) != 1 || is.Problems[0].Message != "unknown field `limit`" || is.Since.IsZero() || len(is.Rules) != 1 {
		t.Errorf("a failing reload is shown as %+v", is)
	}
}

func TestWithoutRules(t *testing.T) {
	d := newDesk(t, few, func(o *Options) { o.Rules = nil })
	if w := d.ask("GET", "/rules", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"rules": []`) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := d.ask("GET", "/readyz", ""); w.Code != 200 {
		t.Errorf("not ready: %d", w.Code)
	}
	problem(t, d.ask("GET", "/keys?as=user=1", ""), 404, "no rules")
}

func TestLoad(t *testing.T) {
	var got []float64
	d := newDesk(t, few, func(o *Options) {
		o.LoadLasts = time.Minute
		o.Load = func(v float64) error {
			if v < 0 {
				return errors.New("a load is a number from 0 upwards")
			}
			got = append(got, v)
			return nil
		}
	})
	w := d.ask("POST", "/load", `{"value": 0.7}`)
	if w.Code != 200 || len(got) != 1 || got[0] != 0.7 || !strings.Contains(w.Body.String(), `"expires_in_seconds": 60`) {
		t.Errorf("got %d %s, pushed %v", w.Code, w.Body, got)
	}
	f := func(status int, body, part string) {
		t.Helper()
		problem(t, d.ask("POST", "/load", body), status, part)
	}
	f(400, `{}`, "no value")
	f(400, `{"value": -1}`, "from 0 upwards")
	f(400, `{"value": "much"}`, "cannot be read")
	f(400, `{"value": 1, "for": 2}`, `unknown field "for"`)
	f(400, `{"value": 1} {"value": 2}`, "more after")
	f(400, ` `, "empty")
	f(413, `{"value": 1, "x": "`+strings.Repeat("x", maxBody)+`"}`, "larger than")
	if len(got) != 1 {
		t.Errorf("pushed %v", got)
	}
	d = newDesk(t, few, nil)
	problem(t, d.ask("POST", "/load", `{"value": 0.7}`), 404, "nothing at /load")
}

func TestMetricsAndProfiles(t *testing.T) {
	d := newDesk(t, few, func(o *Options) {
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "tidegate_requests_total 7") })
	})
	f := func(path, part string) {
		t.Helper()
		w := d.ask("GET", path, "")
		if w.Code != 200 || !strings.Contains(w.Body.String(), part) {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
		if w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be kept", path)
		}
	}
	f("/metrics", "tidegate_requests_total 7")
	f("/debug/pprof/", "goroutine")
	f("/debug/pprof/goroutine?debug=1", "TestMetricsAndProfiles")
	f("/debug/pprof/cmdline", "admin")
	problem(t, d.ask("GET", "/dashboard", ""), 404, "nothing at /dashboard")
}
