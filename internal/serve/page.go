package serve

import (
	"context"
	"encoding/json"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/front/dashboard"
	"tidegate.dev/tidegate/internal/telemetry/fit"
)

// openPage makes the dashboard, and the admin API with the options o that serves it.
func (s *server) openPage(o admin.Options) (api *admin.API, page *dashboard.Dashboard) {
	page = dashboard.New(dashboard.Options{Pages: s.config.Admin.Pages, Look: func(ctx context.Context) func(string) []byte {
		found := api.Moment(ctx)
		return func(rule string) []byte {
			if rule == "" {
				return asJSON(found.Overview())
			}
			return asJSON(found.Rule(rule))
		}
	}})
	o.Page, o.Live, o.Version = page, page, s.version
	if s.gateway.listener != nil {
		o.Gateway = s.address(s.gateway.listener, s.gateway.tls.certificate != nil)
	}
	o.Fit = func(rule string) fit.Report { return s.fit.Report(rule, time.Now()) }
	api = admin.New(o)
	return api, page
}

func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // cannot happen: numbers, texts and times
		return []byte("null")
	}
	return text
}
