package admin

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// Applier changes rules where they come from.
type Applier interface {
	// Layers returns the files of the rules in force, layer by layer.
	Layers() ([]EditableLayer, error)
	// Replace replaces the files of a layer, if they are still those in layer. It returns where
	// they are stored. The error is [source.ErrConflict] if they have changed; on an error nothing
	// is replaced.
	Replace(ctx context.Context, layer *EditableLayer, b *source.Bundle) (where string, err error)
}

// EditableLayer is a source of the rules in force.
type EditableLayer struct {
	Name  string            `json:"name"`
	Main  string            `json:"main,omitempty"` // the file to begin with; "" means all at the top
	Files map[string]string `json:"files"`
	// Unshown says of files why they are not in Files and cannot be changed here.
	Unshown map[string]string `json:"unshown,omitempty"`
	// Fixed says why the layer cannot be changed here; "" means that it can.
	Fixed string `json:"fixed,omitempty"`
	// Reaches says which instances get a change.
	Reaches string `json:"reaches,omitempty"`

	Bundle *source.Bundle `json:"-"`
}

// RuleFiles are the files of the rules in force.
type RuleFiles struct {
	Hash   string          `json:"hash"`
	Layers []EditableLayer `json:"layers"`
}

// ruleFiles shows the rules in force as they are written.
func (s *server) ruleFiles(*http.Request) (any, error) {
	if s.Rules == nil || s.Apply == nil {
		return nil, problemf(http.StatusNotFound, "There are no rules here.")
	}
	// Read before Layers is called: if other rules come in force in between, the hash is that of older
	// rules than the files, and a change that is made from these is a conflict.
	hash := s.Rules.Status().Hash
	layers, err := s.Apply.Layers()
	if err != nil {
		return nil, problemf(http.StatusServiceUnavailable, "The files of the rules cannot be shown: %v.", err)
	}
	return RuleFiles{Hash: hash, Layers: layers}, nil
}

// NewRules is the body of POST /rules/apply: files that replace those in force, or a set from the
// history.
type NewRules struct {
	// Hash is the hash of the rules that the change is based on. If others are in force, that is a
	// conflict.
	Hash string `json:"hash"`
	// Layer that is changed; "" means the only one.
	Layer string `json:"layer,omitempty"`
	// Files that are changed, by their names; the others stay.
	Files map[string]string `json:"files,omitempty"`
	// BackTo is the hash of a set of the history that comes in force again.
	BackTo string `json:"back_to,omitempty"`
	Reason string `json:"reason"`
}

// Applied is the result of POST /rules/apply.
type Applied struct {
	// Where the files are now.
	Where string `json:"where"`
	// Hash of the rules in force on the instance that answers.
	Hash string `json:"hash"`
	// Changed: the rules in force have changed. Other instances may take a second longer.
	Changed bool `json:"changed"`
}

// applyWait is how long the answer waits for the new rules to come into force.
const applyWait = 5 * time.Second

// applyRules replaces the rules at their source.
func (s *server) applyRules(r *http.Request) (any, operation, error) {
	var q NewRules
	d := operation{action: "apply"}
	if err := decode(r, &q); err != nil {
		return nil, d, err
	}
	d = operation{action: "apply", reason: q.Reason, what: []any{"layer", q.Layer, "files", slices.Sorted(maps.Keys(q.Files)), "from", q.Hash}}
	if q.BackTo != "" {
		d.action, d.what = "rollback", []any{"layer", q.Layer, "back_to", q.BackTo, "from", q.Hash}
	}
	if err := checkReason(q.Reason); err != nil {
		return nil, d, err
	}
	layer, bundle, err := s.newRules(r.Context(), &q)
	if err != nil {
		return nil, d, err
	}
	bundle.Author, bundle.Reason = operatorOf(r.Context()).Name, q.Reason
	was := s.Rules.Status()
	where, err := s.Apply.Replace(r.Context(), layer, bundle)
	switch {
	case errors.Is(err, source.ErrConflict):
		return nil, d, problemf(http.StatusConflict, "Nothing was changed: %v. Look at the rules again.", err)
	case err != nil:
		return nil, d, problemf(http.StatusServiceUnavailable, "Nothing was changed: %v.", err)
	}
	if s.Reload != nil {
		s.Reload()
	}
	s.awaitRules(r.Context(), layer.Name, bundle.Sum())
	is := s.Rules.Status()
	d.what = append(d.what, "hash", is.Hash)
	return Applied{Where: where, Hash: is.Hash, Changed: is.Hash != was.Hash}, d, nil
}

// newRules returns the layer to change, and its new files, after checking that they load.
func (s *server) newRules(ctx context.Context, q *NewRules) (*EditableLayer, *source.Bundle, error) {
	switch {
	case s.Rules == nil || s.Apply == nil || s.CompileFiles == nil:
		return nil, nil, problemf(http.StatusNotFound, "There are no rules here that could be changed.")
	case strings.TrimSpace(q.Reason) == "":
		return nil, nil, problemf(http.StatusBadRequest, "There is no reason; say in reason why, for whoever looks at this later.")
	case (len(q.Files) == 0) == (q.BackTo == ""):
		return nil, nil, problemf(http.StatusBadRequest, "Send either files or back_to.")
	}
	layers, err := s.Apply.Layers()
	if err != nil {
		return nil, nil, problemf(http.StatusServiceUnavailable, "The files of the rules cannot be read: %v.", err)
	}
	// Checked after Layers was called: if other rules came into force in between, the layers are
	// not those of q.Hash.
	if q.Hash != s.Rules.Status().Hash {
		return nil, nil, problemf(http.StatusConflict, "Nothing was changed: other rules are in force by now than those that this was made from. Look at the rules again.")
	}
	at := slices.IndexFunc(layers, func(l EditableLayer) bool { return l.Name == q.Layer || q.Layer == "" && len(layers) == 1 })
	switch {
	case at < 0:
		return nil, nil, problemf(http.StatusBadRequest, "There is no layer %q here.", q.Layer)
	case layers[at].Fixed != "":
		return nil, nil, problemf(http.StatusConflict, "The rules of %s cannot be changed here: %s.", layers[at].Name, layers[at].Fixed)
	case q.BackTo != "" && len(layers) > 1:
		return nil, nil, problemf(http.StatusConflict, "The history has all layers together; go back in one of them with `tidegate rules rollback`.")
	}
	bundle := &source.Bundle{Main: layers[at].Bundle.Main, Over: layers[at].Bundle.Over, Files: maps.Clone(layers[at].Bundle.Files)}
	if q.BackTo != "" {
		past, err := s.bundleOf(ctx, q.BackTo)
		switch {
		case errors.Is(err, source.ErrNoRevision) || err == nil && past == nil:
			return nil, nil, problemf(http.StatusNotFound, "There is no set %q in the history: GET /rules/history lists those there are.", q.BackTo)
		case err != nil:
			return nil, nil, problemf(http.StatusServiceUnavailable, "The history cannot be read: %v.", err)
		}
		bundle.Main, bundle.Over, bundle.Files = past.Main, past.Over, past.Files
	}
	for name, text := range q.Files {
		if _, known := bundle.Files[name]; !known {
			return nil, nil, problemf(http.StatusBadRequest, "There is no file %q in %s.", name, layers[at].Name)
		}
		if why := layers[at].Unshown[name]; why != "" {
			return nil, nil, problemf(http.StatusConflict, "The file %q of %s cannot be changed here: %s.", name, layers[at].Name, why)
		}
		bundle.Files[name] = []byte(text)
	}
	proposal := proposalOf(bundle)
	if len(layers) > 1 {
		proposal.Layer = layers[at].Name
	}
	if _, err := s.CompileFiles(proposal); err != nil {
		if load, ok := errors.AsType[*rules.LoadError](err); ok {
			return nil, nil, problemf(http.StatusUnprocessableEntity, "The rules do not load, and nothing was changed: %v", load)
		}
		return nil, nil, problemf(http.StatusUnprocessableEntity, "The rules do not load, and nothing was changed: %v.", err)
	}
	return &layers[at], bundle, nil
}

// awaitRules returns when files with that hash are in force in a layer, and in the history, or
// after applyWait.
func (s *server) awaitRules(ctx context.Context, layer, hash string) {
	ctx, cancel := context.WithTimeout(ctx, applyWait)
	defer cancel()
	for {
		if slices.ContainsFunc(s.Rules.Status().Layers, func(l source.LayerStatus) bool { return l.Name == layer && l.Hash == hash }) && s.noted(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// noted reports whether the history has the rules in force, or there is no history.
func (s *server) noted(ctx context.Context) bool {
	if s.History == nil {
		return true
	}
	is := s.Rules.Status()
	all, _ := s.History.History(ctx) // with an error it has only those of this instance
	return slices.ContainsFunc(all, func(e source.Edition) bool {
		return e.Hash == is.Hash && e.At.After(is.LoadedAt.Add(-applyWait)) // another instance may have added them earlier
	})
}
