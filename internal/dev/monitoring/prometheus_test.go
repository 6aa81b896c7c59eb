package monitoring

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

func TestMain(m *testing.M) { testdep.Main(m) }

const rules = `
version: 1
rules:
  - { name: api, match: /api/, per: ip, limits: 5/minute, on_store_failure: local }
  - { name: site, match: /, per: everyone, limits: 1000000/minute, on_store_failure: allow }
`

// instance is a tidegate that counts in Redis.
type instance struct{ gateway, admin string }

func serve(t *testing.T, redis string) instance {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "rules.yaml"), rules)
	is := instance{"127.0.0.1:" + testdep.FreePort(t), "127.0.0.1:" + testdep.FreePort(t)}
	s := testdep.Run(t, dir, testdep.Command(t), "serve", "--rules=rules.yaml", "--listen.gateway="+is.gateway, "--listen.admin="+is.admin,
		"--store.redis=redis://"+redis, "--store.deadline=10s", "--log.access=off")
	s.Listens(t, "tcp", is.gateway)
	s.Listens(t, "tcp", is.admin)
	return is
}

func (i instance) ask() {
	for _, path := range []string{"/api/", "/"} {
		if res, err := http.Get("http://" + i.gateway + path); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
}

// prometheus scrapes an instance several times a second, with the alerts of the project except
// that none waits, and looks back as many seconds as they do minutes.
type prometheus struct{ addr string }

var (
	waits = regexp.MustCompile(`(?m)^( +)for: \d+[smh]$`)
	looks = regexp.MustCompile(`\[(\d+)m\]`)
)

func runPrometheus(t *testing.T, target string) prometheus {
	t.Helper()
	program, dir := testdep.Need(t, "prometheus"), t.TempDir()
	config := strings.NewReplacer("scrape_interval: 15s", "scrape_interval: 200ms", "evaluation_interval: 15s", "evaluation_interval: 200ms",
		"127.0.0.1:9090", target).Replace(readFile(t, configFile))
	writeFile(t, filepath.Join(dir, "prometheus.yaml"), config)
	writeFile(t, filepath.Join(dir, "alerts.yaml"), looks.ReplaceAllString(waits.ReplaceAllString(readFile(t, alertsFile), "${1}for: 0s"), "[${1}s]"))
	p := prometheus{"127.0.0.1:" + testdep.FreePort(t)}
	run := testdep.Run(t, dir, program, "--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--web.listen-address="+p.addr, "--log.level=warn")
	run.Listens(t, "tcp", p.addr)
	return p
}

// get asks Prometheus; into is what is in data of its answer.
func (p prometheus) get(path string, into any) error {
	res, err := http.Get("http://" + p.addr + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return fmt.Errorf("status %d: %w", res.StatusCode, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", answer.Status, answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// query returns how many series there are.
func (p prometheus) query(q string) (int, error) {
	var data struct{ Result []json.RawMessage }
	err := p.get("/api/v1/query?query="+url.QueryEscape(q), &data)
	return len(data.Result), err
}

// firing are the names of the alerts that are told now.
func (p prometheus) firing() (all []string) {
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	if p.get("/api/v1/alerts", &data) != nil {
		return nil
	}
	for _, a := range data.Alerts {
		if a.State == "firing" && !slices.Contains(all, a.Labels["alertname"]) {
			all = append(all, a.Labels["alertname"])
		}
	}
	slices.Sort(all)
	return all
}

// await is testdep.Eventually, and somebody is asked meanwhile.
func await(t *testing.T, what string, is instance, f func() bool) {
	t.Helper()
	testdep.Eventually(t, what, func() bool { is.ask(); return f() })
}

// quiet are queries of the dashboard that have no answer in this test, because what they are about
// is not there: a cluster, tokens, a control plane, a config server, counters in memory.
var quiet = regexp.MustCompile(`server_state|jwks|api_keys|xds|rule_store|store_bytes|unasked|credentials|identity_missing|memory_max|loaded_timestamp|layer_reached`)

// A Prometheus with the files of the project scrapes an instance, has an answer to what the
// dashboard asks, tells that Redis is gone, and that it is back.
func TestPrometheusTellsThatRedisIsGone(t *testing.T) {
	t.Parallel()
	testdep.Need(t, "prometheus")
	redis := testdep.Redis(t)
	is := serve(t, redis.Addr)
	p := runPrometheus(t, is.admin)
	await(t, "the store is shown as ok", is, func() bool {
		n, err := p.query(`tidegate_store_state{job="tidegate", state="ok"} == 1 and on (instance) tidegate_store_server_cpu_seconds_total > 0`)
		return err == nil && n == 1
	})
	// For a moment a busy machine may be slow enough.
	var told []string
	if !testdep.Await(time.Minute, func() bool { is.ask(); told = p.firing(); return len(told) == 0 }) {
		t.Errorf("told while all is well: %q", told)
	}
	d := readDashboard(t)
	for _, q := range d.queries() {
		var err error
		if !testdep.Await(30*time.Second, func() bool {
			var n int
			is.ask()
			n, err = p.query(q)
			return err != nil || n > 0 || quiet.MatchString(q)
		}) {
			t.Errorf("%s: nothing", q)
		}
		if err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}

	redis.Kill()
	await(t, "TidegateStoreDown and TidegateFailingOpen are told", is, func() bool {
		now := p.firing()
		return slices.Contains(now, "TidegateStoreDown") && slices.Contains(now, "TidegateFailingOpen")
	})
	redis.Start()
	await(t, "they are told no more", is, func() bool {
		now := p.firing()
		return !slices.Contains(now, "TidegateStoreDown") && !slices.Contains(now, "TidegateFailingOpen")
	})
}

// promtool is content with the page that a server shows, with Redis and in front of it.
func TestPromtoolChecksTheMetrics(t *testing.T) {
	t.Parallel()
	is := serve(t, testdep.Redis(t).Addr)
	for range 10 {
		is.ask()
	}
	var page string
	await(t, "Redis tells what it uses", is, func() bool {
		res, err := http.Get("http://" + is.admin + "/metrics")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		page = string(text)
		return strings.Contains(page, "tidegate_store_server_clients{")
	})
	if out, ok := promtool(t, page, "check", "metrics"); !ok {
		t.Error(out)
	}
	if out, ok := promtool(t, page+"# HELP tidegate_wrong_total is a gauge.\n# TYPE tidegate_wrong_total gauge\ntidegate_wrong_total 1\n", "check", "metrics"); ok {
		t.Errorf("a counter that is a gauge is fine: %s", out)
	}
}
