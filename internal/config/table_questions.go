package config

import (
	"time"
)

// checkTable has the settings of the HTTP check API.
var checkTable = []*setting{
	{
		path: "check.token_file", example: "check.token", file: aFile,
		slot: one(func(c *Config) *string { return &c.Check.TokenFile }, path),
		help: "`FILE` with the token that the check API requires, of 16 bytes or more; read again when it changes",
	},
	{
		path: "check.deadline", example: "250ms", fallback: "250ms",
		slot: one(func(c *Config) *time.Duration { return &c.Check.Deadline }, lasting(time.Millisecond, time.Minute)),
		help: "`TIME` by which the check API answers every question",
	},
	{
		path: "check.tls.cert", example: "check-cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Check.TLS.Cert }, path),
		help: "`FILE` with the certificate of the check API and its chain (PEM); read again when it changes",
	},
	{
		path: "check.tls.key", example: "check-key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Check.TLS.Key }, path),
		help: "`FILE` with the private key of check.tls.cert (PEM)",
	},
	{
		path: "check.tls.client_ca", example: "check-callers.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Check.TLS.ClientCA }, path),
		help: "`FILE` with the authorities (PEM) of the certificates that callers of the check API must have",
	},
}

// respTable has the settings of the RESP listener.
var respTable = []*setting{
	{
		path: "resp.users_file", example: "resp.users", file: aFile,
		slot: one(func(c *Config) *string { return &c.RESP.UsersFile }, path),
		help: "`FILE` with the users of the RESP listener, a line each: name, password and, if wanted, a prefix for its keys; read again when it changes",
	},
	{
		path: "resp.tls.cert", example: "resp-cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RESP.TLS.Cert }, path),
		help: "`FILE` with the certificate of the RESP listener and its chain (PEM); read again when it changes",
	},
	{
		path: "resp.tls.key", example: "resp-key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RESP.TLS.Key }, path),
		help: "`FILE` with the private key of resp.tls.cert (PEM)",
	},
	{
		path: "resp.tls.client_ca", example: "resp-callers.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RESP.TLS.ClientCA }, path),
		help: "`FILE` with the authorities (PEM) of the certificates that callers of the RESP listener must have",
	},
}
