package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

// slowStore looks at keys until somebody has seen that.
type slowStore struct{ seen chan struct{} }

func (s slowStore) Survey(ctx context.Context, asked [][]tidegate.Check, _ [][]string, f func(int, string, []int64)) ([]float64, error) {
	for range 1234 {
		f(0, "", make([]int64, len(asked[0])))
	}
	select {
	case <-s.seen:
		return []float64{1}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A client that asks for it is told how far a plan is, before the answer; no other is.
func TestPlanShowsProgress(t *testing.T) {
	store := slowStore{make(chan struct{})}
	d := planning(t, fmt.Sprintf(planned, "limits: 10/day"), func(o *Options) { o.Survey = store })
	server := httptest.NewServer(d)
	defer server.Close()
	body, err := json.Marshal(Proposal{Main: "rules.yaml", Files: map[string]string{"rules.yaml": "version: 1\n" + fmt.Sprintf(planned, "limits: 3/day")}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(header string) (told []string) {
		t.Helper()
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			told = append(told, fmt.Sprint(code, " ", h.Get(ProgressHeader)))
			if len(told) == 1 {
				close(store.seen)
			}
			return nil
		}})
		r, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/rules/plan", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if header != "" {
			r.Header.Set(ProgressHeader, header)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var p Plan
		if err := json.NewDecoder(res.Body).Decode(&p); err != nil || res.StatusCode != http.StatusOK || len(p.Keys) != 1 || p.Keys[0].Keys != 1234 {
			t.Errorf("%s, %v: %+v", res.Status, err, p)
		}
		if h := res.Header.Get(ProgressHeader); h != "" {
			t.Errorf("the answer itself has %s: %s", ProgressHeader, h)
		}
		return told
	}
	if told := ask("1"); len(told) == 0 || told[0] != "102 1234" {
		t.Errorf("told %q", told)
	}
	if told := ask(""); len(told) != 0 {
		t.Errorf("told %q without having asked", told)
	}
}
