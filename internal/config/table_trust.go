package config

import (
	"net/netip"
	"time"

	"tidegate.dev/tidegate/internal/lang/apikey"
)

// trustTable has the settings of what requests are believed about their callers.
var trustTable = []*setting{
	{
		path: "trust.proxies", example: "10.0.0.0/8",
		slot: list(func(c *Config) *[]netip.Prefix { return &c.Trust.Proxies }, network),
		help: "`NETWORKS` of your own proxies, whose X-Forwarded-For is believed",
	},
	{
		path: "trust.unix", example: "true", fallback: "false",
		slot: yesNo(func(c *Config) *bool { return &c.Trust.Unix }),
		help: "clients on a Unix socket are your own proxies, too",
	},
	{
		path: "trust.jwt.jwks", example: "jwks.json", file: aFile,
		slot: one(func(c *Config) *string { return &c.Trust.JWT.JWKS }, keySet),
		help: "`URL` (https) or file of the JSON Web Key Set that verifies bearer tokens; a URL is fetched again when it is due, and when a token has an unknown key id",
	},
	{
		path: "trust.jwt.refresh", example: "10m", fallback: "10m",
		slot: one(func(c *Config) *time.Duration { return &c.Trust.JWT.Refresh }, lasting(10*time.Second, day)),
		help: "`TIME` after which the keys of a URL are fetched again",
	},
	{
		path: "trust.jwt.copy", example: "/var/lib/tidegate/jwks.json", file: itsFolder,
		slot: one(func(c *Config) *string { return &c.Trust.JWT.Copy }, path),
		help: "`FILE` that keeps the last good keys of a URL, for a start while it does not answer",
	},
	{
		path: "trust.jwt.key", example: "jwt.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Trust.JWT.Key }, path),
		help: "`FILE` with the public key (PEM) or shared secret that verifies bearer tokens, instead of trust.jwt.jwks",
	},
	{
		path: "trust.jwt.issuer", example: "https://login.example.com",
		slot: one(func(c *Config) *string { return &c.Trust.JWT.Issuer }, text),
		help: "`ISSUER` that a token must have; any if not set",
	},
	{
		path: "trust.jwt.audience", example: "api",
		slot: one(func(c *Config) *string { return &c.Trust.JWT.Audience }, text),
		help: "`AUDIENCE` that a token must have; any if not set",
	},
	{
		path: "trust.api_keys.from", example: "bearer", fallback: apikey.Usual,
		slot: one(func(c *Config) *string { return &c.Trust.APIKeys.From }, keyPlace),
		help: "`PLACE` where a request has its API key: client header NAME, bearer (Authorization: Bearer KEY), basic.user, query NAME, cookie NAME, or header NAME if a trusted proxy sets it",
	},
	{
		path: "trust.api_keys.file", example: "api-keys.csv", file: aFile,
		slot: one(func(c *Config) *string { return &c.Trust.APIKeys.File }, path),
		help: "`FILE` with the hashes, names and attributes of API keys, which tidegate api-keys writes; changes take effect at once",
	},
}
