package config

import "time"

const defaultRules = "rules.yaml"

// rulesTable has the settings of where rules come from.
var rulesTable = []*setting{
	{
		path: "rules", example: "rules.yaml", file: fileOrFolder, urls: true,
		slot:    list(func(c *Config) *[]string { return &c.Rules }, ruleSource),
		derived: "rules.yaml beside the configuration file, if it is there",
		help:    "rule `FILE`, a folder of them, or a source: https://, redis://HOST#NAME, etcd://HOST/PREFIX or dogma://HOST/PROJECT/REPO/PATH; several are layers, of which a later one may replace what earlier ones have. Changes take effect at once",
		shape:   "write the rules into a file of their own, and name it: `rules: rules.yaml`",
	},
	{
		path: "rules_source.token_file", example: "rules.token", file: aFile,
		slot: one(func(c *Config) *string { return &c.RulesSource.TokenFile }, path),
		help: "`FILE` with the bearer token for sources by HTTP and for Central Dogma; read again when it changes",
	},
	{
		path: "rules_source.user", example: "tidegate",
		slot: one(func(c *Config) *string { return &c.RulesSource.User }, text),
		help: "`NAME` of the user of etcd, or of a Redis whose URL has none",
	},
	{
		path: "rules_source.password_file", example: "rules.password", file: aFile,
		slot: one(func(c *Config) *string { return &c.RulesSource.PasswordFile }, path),
		help: "`FILE` with the password of that user",
	},
	{
		path: "rules_source.ca", example: "rules-ca.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RulesSource.CA }, path),
		help: "`FILE` with the authorities (PEM) of sources over TLS; those of the system if not set",
	},
	{
		path: "rules_source.cert", example: "rules-cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RulesSource.Cert }, path),
		help: "`FILE` with the certificate (PEM) to show to sources over TLS",
	},
	{
		path: "rules_source.key", example: "rules-key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RulesSource.Key }, path),
		help: "`FILE` with the private key of rules_source.cert (PEM)",
	},
	{
		path: "rules_source.copy", example: "/var/lib/tidegate/rules", file: newFolder,
		slot: one(func(c *Config) *string { return &c.RulesSource.Copy }, path),
		help: "`FOLDER` for the last good rules of each source, for a start without it; it is made if it is not there",
	},
	{
		path: "rules_source.start", example: OpenStart, fallback: RefuseStart,
		slot: one(func(c *Config) *string { return &c.RulesSource.Start }, oneOf(RefuseStart, OpenStart)),
		help: "`WORD` for what happens at the start without a source and without a copy: refuse to start, or open: nothing is limited until rules come",
	},
	{
		path: "rules_source.wait", example: "1m", fallback: "1m",
		slot: one(func(c *Config) *time.Duration { return &c.RulesSource.Wait }, lasting(time.Second, 10*time.Minute)),
		help: "`TIME` that a source may wait with its answer until there is something new",
	},
}
