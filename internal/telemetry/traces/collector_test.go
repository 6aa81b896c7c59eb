package traces

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	proto "go.opentelemetry.io/proto/otlp/trace/v1"
	wire "google.golang.org/protobuf/proto"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// collector takes traces as a real one does.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*proto.Span
	process []*common.KeyValue // of the last batch
	header  http.Header        // of the last request
	paths   []string
}

func newCollector(t testing.TB) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var batch collect.ExportTraceServiceRequest
		if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" || wire.Unmarshal(body, &batch) != nil {
			t.Errorf("%s is not a batch of spans: %v", r.Header.Get("Content-Type"), err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.header, c.paths = r.Header, append(c.paths, r.URL.Path)
		for _, of := range batch.ResourceSpans {
			c.process = of.Resource.Attributes
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
		answer, _ := wire.Marshal(&collect.ExportTraceServiceResponse{})
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(c.Close)
	return c
}

// await returns n spans.
func (c *collector) await(t testing.TB, n int) []*proto.Span {
	t.Helper()
	var got []*proto.Span
	if !testdep.Await(30*time.Second, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		got = c.spans
		return len(got) >= n
	}) {
		t.Fatalf("%d spans of %d", len(got), n)
	}
	return got
}

// value is the text or number of an attribute; nil if there is none.
func value(all []*common.KeyValue, key string) any {
	for _, a := range all {
		if a.Key == key {
			switch v := a.Value.Value.(type) {
			case *common.AnyValue_StringValue:
				return v.StringValue
			case *common.AnyValue_IntValue:
				return v.IntValue
			}
		}
	}
	return nil
}
