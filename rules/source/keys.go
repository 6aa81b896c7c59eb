package source

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"tidegate.dev/tidegate/rules"
)

// keyWatch keeps the API keys in force the same as those in their file.
type keyWatch struct {
	keys     *rules.APIKeys
	reloader *reloader
}

// loadKeys puts the API keys in force, if there are any. Rules find them there and do not read the
// file themselves, so it is not followed as a file of the rules.
func loadKeys(o Options) error {
	keys := o.Config.Trust.APIKeys
	if keys == nil {
		return nil
	}
	table, err := keys.Read(o.Config.ReadFile)
	if err == nil {
		keys.Swap(table)
	}
	return err
}

// watchKeys follows the file of API keys, if there is one. The rules have been loaded before.
func (w *Watcher) watchKeys(ctx context.Context, o Options, p pace) error {
	keys := o.Config.Trust.APIKeys
	if keys == nil {
		return nil
	}
	k := &keyWatch{keys: keys}
	var change rules.KeyChange
	k.reloader = &reloader{
		name: keys.File, what: "API keys", open: o.Config.ReadFile, log: o.Log, pace: p,
		load: func(v *view) (func(string), error) {
			table, err := keys.Read(v.readFile)
			return func(string) { change = keys.Swap(table) }, err
		},
		onReload: func() { logKeys(o.Log, keys, change, w.live.Set()) },
		onError: func(err error) {
			if o.OnError != nil {
				o.OnError(err)
			}
		},
	}
	if err := k.reloader.start(ctx); err != nil {
		return err
	}
	w.keys = k
	return nil
}

func (k *keyWatch) close() {
	if k != nil {
		k.reloader.close()
	}
}

func (k *keyWatch) status() *APIKeysStatus {
	if k == nil {
		return nil
	}
	s, err := k.reloader.now()
	is := &APIKeysStatus{
		File: k.keys.File, Keys: k.keys.Len(), LoadedAt: s.LoadedAt, Hash: s.Hash,
		Reloads: s.Reloads, Failed: s.Failed, Since: s.Since,
	}
	if err != nil {
		is.LastError = err.Error()
	}
	return is
}

// logKeys logs what has changed, and what happens to callers whose key is gone.
func logKeys(log *slog.Logger, keys *rules.APIKeys, c rules.KeyChange, set *rules.Set) {
	log.Info("API keys reloaded", "file", keys.File, "keys", keys.Len(),
		"added", some(c.Added), "removed", some(c.Removed), "changed", some(c.Changed))
	if len(c.Removed) > 0 {
		log.Warn("API keys were removed: requests with them now have no key", "names", some(c.Removed), "then", some(set.WithoutAPIKey()))
	}
}

// some joins the first maxChanges of texts, and says how many more there are.
func some(texts []string) string {
	if more := len(texts) - maxChanges; more > 0 {
		return strings.Join(texts[:maxChanges], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(texts, ", ")
}
