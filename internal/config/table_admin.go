package config

import "net/netip"

// adminTable has the settings of the admin listener.
var adminTable = []*setting{
	{
		path: "admin.token_file", example: "admin.token", file: aFile,
		slot: one(func(c *Config) *string { return &c.Admin.TokenFile }, path),
		help: "`FILE` with a token that may do everything at the admin listener, of 16 bytes or more, read again when it changes; without this, admin.tokens, admin.tls.client_ca or admin.sso only this machine is served",
	},
	{
		path: "admin.tokens", example: "operators", file: aFile,
		slot: one(func(c *Config) *string { return &c.Admin.Tokens }, path),
		help: "`FILE` with the operators, a line each: NAME, ROLE (view, operate, rule or scrape) and the SHA-256 of a token in hex; read again when it changes",
	},
	{
		path: "admin.audit", example: "/var/log/tidegate/audit.log", file: itsFolder,
		slot: one(func(c *Config) *string { return &c.Admin.Audit }, path),
		help: "`FILE` that every write of operators and every change of the rules is appended to, as JSON lines; at 16 MiB it is set aside, and the last 10 files are kept",
	},
	{
		path: "admin.state", example: "/var/lib/tidegate/state", file: itsFolder,
		slot: one(func(c *Config) *string { return &c.Admin.State }, path),
		help: "`FILE` that keeps bans and overrides on this machine: without Redis they end with the process if not set, with it they also hold if the process starts while Redis is away",
	},
	{
		path: "admin.followers", fallback: "16", example: "200",
		slot: one(func(c *Config) *int { return &c.Admin.Followers }, count(span[int]{least: 0, most: 10_000})),
		help: "`NUMBER` of instances that may follow the rules of this one by /rules/bundle at once; each has a connection to the admin listener",
	},
	{
		path: "admin.pages", fallback: "100", example: "1000",
		slot: one(func(c *Config) *int { return &c.Admin.Pages }, count(span[int]{least: 1, most: 10_000})),
		help: "`NUMBER` of pages of the dashboard that may be open at once; each has a connection to the admin listener",
	},
	{
		path: "admin.tls.cert", example: "admin-cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Admin.TLS.Cert }, path),
		help: "`FILE` with the certificate of the admin listener and its chain (PEM); read again when it changes",
	},
	{
		path: "admin.tls.key", example: "admin-key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Admin.TLS.Key }, path),
		help: "`FILE` with the private key of admin.tls.cert (PEM)",
	},
	{
		path: "admin.tls.client_ca", example: "operators-ca.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Admin.TLS.ClientCA }, path),
		help: "`FILE` with the authorities (PEM) of operators' certificates; read again when it changes",
	},
	{
		path: "admin.tls.roles", example: "alice=operate", pairs: true,
		slot: list(func(c *Config) *[]string { return &c.Admin.TLS.Roles }, nameRole),
		help: "`NAME=ROLES` of operators by the common names (CN) of their certificates; * for all others",
	},
	{
		path: "admin.sso.header", example: "X-Forwarded-User",
		slot: one(func(c *Config) *string { return &c.Admin.SSO.Header }, ssoHeader),
		help: "`NAME` of the header in which your proxy says which operator has signed in; none is believed if not set",
	},
	{
		path: "admin.sso.from", example: "10.0.0.7/32",
		slot: list(func(c *Config) *[]netip.Prefix { return &c.Admin.SSO.From }, network),
		help: "`NETWORKS` of that proxy; the header is ignored from everywhere else",
	},
	{
		path: "admin.sso.roles", example: "alice=operate", pairs: true,
		slot: list(func(c *Config) *[]string { return &c.Admin.SSO.Roles }, nameRole),
		help: "`NAME=ROLES` of operators by the names in that header; * for all others",
	},
}
