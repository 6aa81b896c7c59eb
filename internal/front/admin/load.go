package admin

import "net/http"

// pushed is the body of POST /load.
type pushed struct {
	Value *float64 `json:"value"`
}

func (s *server) pushLoad(r *http.Request) (any, operation, error) {
	var p pushed
	d := operation{action: "load", routine: true}
	if err := decode(r, &p); err != nil {
		return nil, d, err
	}
	if p.Value == nil {
		return nil, d, problemf(http.StatusBadRequest, `There is no value; send, for example, {"value": 0.7}.`)
	}
	d.what = []any{"value", *p.Value}
	if err := s.Load(*p.Value); err != nil {
		return nil, d, problemf(http.StatusBadRequest, "The load %v is not taken: %v.", *p.Value, err)
	}
	return struct {
		Value   float64 `json:"value"`
		Expires float64 `json:"expires_in_seconds"`
	}{*p.Value, s.LoadLasts.Seconds()}, d, nil
}
