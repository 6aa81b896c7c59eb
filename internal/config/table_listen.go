package config

// listenTable has the settings of the addresses that are listened at.
var listenTable = []*setting{
	{
		path: "listen.gateway", example: "127.0.0.1:8080", fallback: "127.0.0.1:8080",
		slot: one(func(c *Config) *Address { return &c.Listen.Gateway }, addressOrOff("8080")),
		help: "`ADDRESS` for clients: 127.0.0.1:8080 for this machine only, :8080 for every machine that can reach it, unix:/run/tidegate.sock, or off",
	},
	{
		path: "listen.check", example: "127.0.0.1:8081", fallback: Off,
		slot: one(func(c *Config) *Address { return &c.Listen.Check }, addressOrOff("8081")),
		help: "`ADDRESS` of the HTTP check API, for proxies and services that ask before they act; one that other machines can reach needs check.token_file or check.tls.client_ca",
	},
	{
		path: "listen.resp", example: "127.0.0.1:6380", fallback: Off,
		slot: one(func(c *Config) *Address { return &c.Listen.RESP }, addressOrOff("6380")),
		help: "`ADDRESS` for Redis clients, which ask by commands such as CL.THROTTLE; one that other machines can reach needs resp.users_file or resp.tls.client_ca",
	},
	{
		path: "listen.rls", example: "127.0.0.1:8083", fallback: Off,
		slot: one(func(c *Config) *Address { return &c.Listen.RLS }, addressOrOff("8083")),
		help: "`ADDRESS` of the rate limit service for Envoy (gRPC), in place of envoyproxy/ratelimit",
	},
	{
		path: "listen.rls_http", example: "127.0.0.1:8084", fallback: Off,
		slot: one(func(c *Config) *Address { return &c.Listen.RLSHTTP }, addressOrOff("8084")),
		help: "`ADDRESS` of what envoyproxy/ratelimit offers over HTTP: POST /json, /healthcheck and /rlconfig",
	},
	{
		path: "listen.admin", example: "127.0.0.1:9090", fallback: "127.0.0.1:9090",
		slot: one(func(c *Config) *Address { return &c.Listen.Admin }, address("9090")),
		help: "`ADDRESS` for operators: health, metrics, keys; an address that other machines can reach needs admin.tokens, admin.token_file, admin.tls.client_ca or admin.sso",
	},
}
