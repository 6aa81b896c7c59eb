package config

import (
	"math"
	"net/url"
	"strconv"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Telemetry is what is told about requests beside the access log and the metrics.
type Telemetry struct {
	// Refusals are lines of the process log about refused requests, per rule and second. Default:
	// 1 if there is no access log, else 0.
	Refusals int
	OTLP     OTLP
}

// OTLP is where traces go.
type OTLP struct {
	Endpoint    string  // URL of a collector; default: none, and there are no traces
	Sample      float64 // share of the traces that begin here; default: 0.01
	Service     string  // what this process is called there; default: tidegate
	HeadersFile string  // file with headers for the collector, as NAME: VALUE; default: none
}

// maxRefusals is the largest number of lines per rule and second: a log of all is the access log.
const maxRefusals = 1000

// telemetryTable has the settings of telemetry.
var telemetryTable = []*setting{
	{
		path: "telemetry.refusals", example: "5", fallback: "0",
		slot:    one(func(c *Config) *int { return &c.Telemetry.Refusals }, count(span[int]{least: 1, most: maxRefusals, orZero: true})),
		derived: "1 if log.access is off, else 0",
		help:    "`NUMBER` of refused requests per rule and second that get a line in the process log; 0 for none",
	},
	{
		path: "telemetry.otlp.endpoint", example: "http://127.0.0.1:4318",
		slot: one(func(c *Config) *string { return &c.Telemetry.OTLP.Endpoint }, collector),
		help: "`URL` of an OpenTelemetry collector that gets traces of requests at the gateway (OTLP over HTTP); without a path, /v1/traces",
	},
	{
		path: "telemetry.otlp.sample", example: "10%", fallback: "1%",
		slot: one(func(c *Config) *float64 { return &c.Telemetry.OTLP.Sample }, percent),
		help: "`SHARE` of the traces that begin here; for a trusted proxy that sends a traceparent, the proxy decides",
	},
	{
		path: "telemetry.otlp.service", example: "api-gateway", fallback: "tidegate",
		slot: one(func(c *Config) *string { return &c.Telemetry.OTLP.Service }, text),
		help: "`NAME` of this process in traces (service.name)",
	},
	{
		path: "telemetry.otlp.headers_file", example: "otlp.headers", file: aFile,
		slot: one(func(c *Config) *string { return &c.Telemetry.OTLP.HeadersFile }, path),
		help: "`FILE` with headers for the collector, a line each as NAME: VALUE, such as Authorization",
	},
}

// collector is the codec of the URL of a collector.
var collector = codec[string]{
	read: func(w rawValue) (string, mistake) {
		u, err := url.Parse(w.text)
		switch {
		case !strings.Contains(w.text, "://"):
			return "", wrong("has no scheme: "+quote(w.text), "http://"+strings.TrimLeft(w.text, "/"))
		case err != nil || u.Hostname() == "":
			return "", advised("is not a valid URL: "+quote(w.text), "")
		case u.Scheme != "http" && u.Scheme != "https":
			return "", advised("has the unknown scheme "+quote(u.Scheme), "a collector takes OTLP over `http://` or `https://`, mostly at port 4318")
		case u.User != nil:
			return "", advised("has a user or a password", "write it as a header, in `telemetry.otlp.headers_file`")
		case u.RawQuery != "" || u.Fragment != "":
			return "", advised("has a query or a fragment: "+quote(w.text), "")
		}
		if port := u.Port(); port != "" {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return "", advised("has no port from 1 to 65535: "+quote(w.text), "")
			}
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

// percent is a share from 0 to 1, written as 12.5%.
var percent = codec[float64]{
	read: func(w rawValue) (float64, mistake) {
		digits, ok := strings.CutSuffix(w.text, "%")
		v, err := strconv.ParseFloat(digits, 64)
		switch {
		case err != nil || strings.ContainsAny(digits, "eExXpP_+-nN"):
			return 0, advised("is not a share in percent: "+quote(w.text), "write it like `10%`")
		case !ok:
			return 0, advised("is not a share in percent: "+quote(w.text), "write it like `10%`; a tenth is 10%")
		case v > 100:
			return 0, advised("is "+quote(w.text)+", and must be from 0% to 100%", "")
		}
		return v / 100, mistake{}
	},
	write: func(v float64) string { return strconv.FormatFloat(math.Round(v*1e11)/1e9, 'f', -1, 64) + "%" },
}

// deriveTelemetry sets how many refusals are logged if no source does.
func (l *loader) deriveTelemetry() {
	if !l.given("telemetry.refusals") && l.config.Log.Access == Off {
		l.config.Telemetry.Refusals = 1
	}
}

// checkTelemetry reports settings of traces that have no effect without a collector.
func (l *loader) checkTelemetry() {
	if !l.sound("telemetry.otlp.endpoint") || l.config.Telemetry.OTLP.Endpoint != "" {
		return
	}
	for _, s := range telemetryTable {
		if strings.HasPrefix(s.path, "telemetry.otlp.") && l.given(s.path) && s.path != "telemetry.otlp.endpoint" && strings.Join(s.slot.write(l.config), ",") != s.fallback {
			l.clash(s.path, diag.Error, quote(s.path)+" is given, and no collector", "name it in `telemetry.otlp.endpoint`, as in `telemetry: { otlp: { endpoint: http://127.0.0.1:4318 } }`")
			return
		}
	}
}
