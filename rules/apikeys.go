package rules

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"tidegate.dev/tidegate/internal/lang/apikey"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// APIKeys is how API keys are recognised: a file has the SHA-256 of each, its name, and
// attributes. Do not copy it: Sets that are loaded with the same APIKeys share the keys in
// force, and what is counted. The first Load reads the file;
// [tidegate.dev/tidegate/rules/source] follows it from then on, apart from the rules, so that
// a key can be revoked while a rule file is broken. Other programs call Read and Swap.
type APIKeys struct {
	// From is where a request has its key: "client header X-Api-Key", which is the default,
	// "bearer" for what follows the word Bearer in Authorization, "basic.user", "query NAME",
	// "cookie NAME", or "header NAME" if a trusted proxy sets it.
	From string
	// File is CSV whose first line names the columns: sha256, name, and any others, which
	// are attributes. `tidegate api-keys` writes it.
	File string

	mu       sync.Mutex // held while the file is first read
	table    atomic.Pointer[apikey.Table]
	rejected [keyReasons]atomic.Int64 // by reason
}

// Why an API key is not accepted.
const (
	keyUnknown = iota
	keyTooLong
	keyReasons
)

var keyReasonTexts = [keyReasons]string{"unknown", "too_long"}

// KeyTable is what a file of keys says; see [APIKeys.Read].
type KeyTable struct{ table *apikey.Table }

// Len returns the number of keys.
func (t *KeyTable) Len() int { return t.table.Len() }

// KeyChange is what became different when keys were put in force, by their names.
type KeyChange struct {
	Added, Removed []string
	Changed        []string // with what, as in "acme: plan free, was pro"
}

// Read reads the file and puts nothing in force. The error is a [*LoadError] with everything
// that is wrong, by line. open reads files; nil reads from disk.
func (k *APIKeys) Read(open func(name string) ([]byte, error)) (*KeyTable, error) {
	if open == nil {
		open = apikey.Text
	}
	text, err := open(k.File)
	if err != nil {
		return nil, &LoadError{Name: k.File, what: "API keys", Problems: Problems{{
			Pos: diag.Pos{File: k.File}, Severity: diag.Error, Message: "the API keys cannot be read: " + diag.Reason(err),
			Hint: "`tidegate api-keys add NAME` makes the file; it is named where trust is configured",
		}}}
	}
	t, problems := apikey.Parse(k.File, text)
	if t == nil {
		return nil, &LoadError{Name: k.File, what: "API keys", Problems: problems}
	}
	return &KeyTable{t}, nil
}

// Swap puts keys in force: a request that comes later is recognised by them.
func (k *APIKeys) Swap(t *KeyTable) KeyChange {
	was := k.table.Swap(t.table)
	return KeyChange(apikey.Compare(was, t.table))
}

// Len returns how many keys are in force; 0 before the first Load.
func (k *APIKeys) Len() int {
	if t := k.table.Load(); t != nil {
		return t.Len()
	}
	return 0
}

// keySource is where a Set finds API keys.
type keySource struct {
	*APIKeys
	from apikey.From
}

// newKeys returns where requests have API keys, and reads the file unless that was done before. It
// returns nil if no keys are configured, and, with a problem added, if they cannot be used.
func (c *compiler) newKeys() *keySource {
	k := c.config.Trust.APIKeys
	if k == nil {
		return nil
	}
	from, err := apikey.ParseFrom(k.From)
	if err != nil {
		c.problems.Add(diag.Problem{
			Pos: diag.Pos{File: c.file.Name}, Severity: diag.Error, Message: diag.Quote(k.From) + " is not a place where API keys are", Hint: err.Error(),
		})
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.table.Load() == nil {
		t, err := k.Read(c.config.ReadFile)
		if err != nil {
			c.problems.Add(err.(*LoadError).Problems...)
			return nil
		}
		k.Swap(t)
	}
	return &keySource{k, from}
}

// apiKey returns an attribute of the request's API key or, if attribute is "", the name of the key;
// "" if the request has no key, or one that is not in the file.
func (st *state) apiKey(attribute string) string {
	if !st.keyKnown {
		st.keyKnown = true
		st.keyRow = st.lookUpKey()
	}
	switch {
	case st.keyRow == nil:
		return ""
	case attribute == "":
		return st.keyRow.Name
	}
	return st.keyRow.Attribute(attribute)
}

// lookUpKey finds the request's key among those in force; nil if there is none. It counts keys that
// are rejected.
func (st *state) lookUpKey() *apikey.Row {
	k := st.set.keys
	key := st.keyText()
	if key == "" {
		return nil
	}
	row := k.table.Load().Lookup(key)
	switch {
	case row != nil || st.explains:
	case k.from.Bearer && st.set.verifier != nil && strings.Count(key, ".") == 2: // a token
	case len(key) > apikey.MaxKey:
		k.rejected[keyTooLong].Add(1)
	default:
		k.rejected[keyUnknown].Add(1)
	}
	return row
}

// keyText returns the API key as the request has it; "" if it has none, or two that
// differ.
func (st *state) keyText() string {
	if st.set.keys == nil {
		return ""
	}
	from := &st.set.keys.from
	text, _ := st.request.Value(from.Ask)
	return from.Key(text)
}

// columnsHint names the attributes of the file in force.
func (k *keySource) columnsHint() string {
	return fmt.Sprintf("its attributes are %s", diag.Choice(k.table.Load().Attributes()))
}
