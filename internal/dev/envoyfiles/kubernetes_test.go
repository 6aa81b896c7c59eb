package envoyfiles

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"tidegate.dev/tidegate/internal/config"
)

// The resources of Kubernetes, as far as the files use them. Their own modules would bring
// half of Kubernetes; a field that is not here is an error of the test.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
	} `json:"metadata"`
}

type envoyFilter struct {
	object
	Spec struct {
		WorkloadSelector struct {
			Labels map[string]string `json:"labels"`
		} `json:"workloadSelector"`
		ConfigPatches []struct {
			ApplyTo string `json:"applyTo"`
			Match   struct {
				Context  string `json:"context"`
				Listener *struct {
					FilterChain struct {
						Filter struct {
							Name      string `json:"name"`
							SubFilter struct {
								Name string `json:"name"`
							} `json:"subFilter"`
						} `json:"filter"`
					} `json:"filterChain"`
				} `json:"listener"`
				RouteConfiguration *struct {
					Vhost struct {
						Name  string `json:"name"`
						Route struct {
							Action string `json:"action"`
						} `json:"route"`
					} `json:"vhost"`
				} `json:"routeConfiguration"`
			} `json:"match"`
			Patch struct {
				Operation string          `json:"operation"`
				Value     json.RawMessage `json:"value"`
			} `json:"patch"`
		} `json:"configPatches"`
	} `json:"spec"`
}

type service struct {
	object
	Spec struct {
		Selector map[string]string `json:"selector"`
		Ports    []struct {
			Name       string `json:"name"`
			Port       int    `json:"port"`
			TargetPort int    `json:"targetPort"`
		} `json:"ports"`
	} `json:"spec"`
}

type envoyGateway struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Gateway    struct {
		ControllerName string `json:"controllerName"`
	} `json:"gateway"`
	RateLimit struct {
		Backend struct {
			Type  string `json:"type"`
			Redis struct {
				URL string `json:"url"`
			} `json:"redis"`
		} `json:"backend"`
		Timeout    string `json:"timeout"`
		FailClosed bool   `json:"failClosed"`
	} `json:"rateLimit"`
	Provider struct {
		Type       string `json:"type"`
		Kubernetes struct {
			RateLimitDeployment struct {
				Container struct {
					Image string `json:"image"`
					Env   []struct{ Name, Value string }
				} `json:"container"`
				Patch struct {
					Type  string `json:"type"`
					Value struct {
						Spec struct {
							Template struct {
								Spec struct {
									Containers []struct {
										Name    string   `json:"name"`
										Command []string `json:"command"`
									} `json:"containers"`
								} `json:"spec"`
							} `json:"template"`
						} `json:"spec"`
					} `json:"value"`
				} `json:"patch"`
			} `json:"rateLimitDeployment"`
		} `json:"kubernetes"`
	} `json:"provider"`
}

type cost struct {
	From     string `json:"from"`
	Number   *int   `json:"number"`
	Metadata *struct {
		Namespace string `json:"namespace"`
		Key       string `json:"key"`
	} `json:"metadata"`
}

type backendTrafficPolicy struct {
	object
	Spec struct {
		TargetRefs []struct{ Group, Kind, Name string } `json:"targetRefs"`
		RateLimit  struct {
			Type   string `json:"type"`
			Global struct {
				Rules []struct {
					ClientSelectors []struct {
						Headers []struct{ Name, Type string } `json:"headers"`
					} `json:"clientSelectors"`
					Limit struct {
						Requests int    `json:"requests"`
						Unit     string `json:"unit"`
					} `json:"limit"`
					Cost struct {
						Request  cost `json:"request"`
						Response cost `json:"response"`
					} `json:"cost"`
				} `json:"rules"`
			} `json:"global"`
		} `json:"rateLimit"`
	} `json:"spec"`
}

// strictly decodes JSON and refuses unknown fields.
func strictly(t *testing.T, what string, b []byte, to any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestIstio(t *testing.T) {
	all := documents(t, "istio.yaml")
	if len(all) != 3 {
		t.Fatalf("%d documents", len(all))
	}
	var inserts, actions envoyFilter
	var asked service
	strictly(t, "the filter", all[0], &inserts)
	strictly(t, "the actions", all[1], &actions)
	strictly(t, "the service", all[2], &asked)
	for _, f := range []envoyFilter{inserts, actions} {
		if f.APIVersion != "networking.istio.io/v1alpha3" || f.Kind != "EnvoyFilter" || len(f.Spec.ConfigPatches) != 1 || len(f.Spec.WorkloadSelector.Labels) == 0 {
			t.Fatalf("%+v", f)
		}
	}
	p := inserts.Spec.ConfigPatches[0]
	if p.ApplyTo != "HTTP_FILTER" || p.Patch.Operation != "INSERT_BEFORE" || p.Match.Context != "GATEWAY" || p.Match.Listener == nil ||
		p.Match.Listener.FilterChain.Filter.SubFilter.Name != "envoy.filters.http.router" {
		t.Errorf("%+v", p)
	}
	var h hcm.HttpFilter
	decode(t, "the filter", p.Patch.Value, &h, false)
	filters := find[*filter.RateLimit](t, h.ProtoReflect())
	if len(filters) != 1 {
		t.Fatalf("%d filters", len(filters))
	}
	checkFilter(t, filters[0])
	name := asked.Metadata.Name + "." + asked.Metadata.Namespace + ".svc.cluster.local"
	call := filters[0].GetRateLimitService().GetGrpcService().GetEnvoyGrpc()
	if call.GetClusterName() != "outbound|8081||"+name || call.GetAuthority() != name || asked.Spec.Ports[0].Port != 8081 || !strings.HasPrefix(asked.Spec.Ports[0].Name, "grpc-") {
		t.Errorf("the filter asks %v, the service is %+v", call, asked)
	}
	p = actions.Spec.ConfigPatches[0]
	if p.ApplyTo != "VIRTUAL_HOST" || p.Patch.Operation != "MERGE" || p.Match.Context != "GATEWAY" || p.Match.RouteConfiguration == nil {
		t.Errorf("%+v", p)
	}
	var v route.VirtualHost
	decode(t, "the actions", p.Patch.Value, &v, true)
	checkActions(t, rulesOf(t, filters[0].GetDomain()), find[*route.RateLimit](t, v.ProtoReflect()))
}

func TestEnvoyGateway(t *testing.T) {
	all := documents(t, "envoy-gateway.yaml")
	if len(all) != 2 {
		t.Fatalf("%d documents", len(all))
	}
	var g envoyGateway
	var p backendTrafficPolicy
	strictly(t, "EnvoyGateway", all[0], &g)
	strictly(t, "BackendTrafficPolicy", all[1], &p)
	d := g.Provider.Kubernetes.RateLimitDeployment
	if g.APIVersion != "gateway.envoyproxy.io/v1alpha1" || g.Kind != "EnvoyGateway" || g.RateLimit.Backend.Type != "Redis" || g.RateLimit.Timeout != "20ms" || g.RateLimit.FailClosed ||
		d.Patch.Type != "StrategicMerge" || len(d.Patch.Value.Spec.Template.Spec.Containers) != 1 {
		t.Errorf("%+v", g)
	}
	// What Envoy Gateway calls its container, and where the binary of the image is.
	if c := d.Patch.Value.Spec.Template.Spec.Containers[0]; c.Name != "envoy-ratelimit" || strings.Join(c.Command, " ") != "/tidegate serve" {
		t.Errorf("%+v", c)
	}
	var environ []string
	for _, e := range d.Container.Env {
		environ = append(environ, e.Name+"="+e.Value)
	}
	here, err := os.Stat("doc.go") // stands for files of the container
	if err != nil {
		t.Fatal(err)
	}
	c, problems := config.Load(config.Options{
		Environ:  environ,
		ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist },
		Stat: func(name string) (os.FileInfo, error) {
			if !strings.HasPrefix(name, "/certs/") {
				return nil, os.ErrNotExist
			}
			return here, nil
		},
	})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	for _, problem := range problems {
		if strings.Contains(problem.Message, "unknown") || strings.Contains(problem.Message, "does nothing") {
			t.Error(problem.Message)
		}
	}
	if c.XDS.Address != "envoy-gateway:18001" || c.XDS.NodeID != "envoy-ratelimit" || c.XDS.Start != config.Without || !c.Listen.RLS.Open() || c.Store.Kind != config.InRedis ||
		c.RLS.TLS.ClientCA == "" || c.XDS.TLS.CA == "" || c.XDS.TLS.Cert == "" {
		t.Errorf("%+v", c)
	}
	if !strings.HasSuffix(c.Store.Redis.URL, "://"+g.RateLimit.Backend.Redis.URL) {
		t.Errorf("Redis is %q and %q", c.Store.Redis.URL, g.RateLimit.Backend.Redis.URL)
	}
	r := p.Spec.RateLimit
	if p.Kind != "BackendTrafficPolicy" || r.Type != "Global" || len(r.Global.Rules) == 0 || len(p.Spec.TargetRefs) == 0 {
		t.Fatalf("%+v", p)
	}
	for _, rule := range r.Global.Rules {
		if rule.Limit.Unit != "Hour" || rule.Limit.Requests == 0 || rule.Cost.Request.Number == nil || rule.Cost.Response.Metadata == nil {
			t.Errorf("%+v", rule)
		}
	}
}
