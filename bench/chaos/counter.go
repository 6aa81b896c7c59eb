package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// used returns how much of a counter the store says is used. who is "name=value", or "" for a
// rule that counts everyone. A store that does not answer in time is asked again.
func (n *node) used(ctx context.Context, rule, who string) (used int64, err error) {
	for range 50 {
		if used, err = n.look(ctx, rule, who); err == nil {
			return used, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return 0, err
}

func (n *node) look(ctx context.Context, rule, who string) (int64, error) {
	q := url.Values{"rule": {rule}}
	if who != "" {
		q.Set("as", who)
	}
	var keys struct {
		Counters []struct{ Remaining, Capacity int64 }
	}
	if err := getJSON(ctx, n.admin+"/keys?"+q.Encode(), &keys); err != nil {
		return 0, err
	}
	if len(keys.Counters) != 1 {
		return 0, fmt.Errorf("%d counters of %s for %q, want one", len(keys.Counters), rule, who)
	}
	return keys.Counters[0].Capacity - keys.Counters[0].Remaining, nil
}

// unheard returns how many requests a node has put to the store without an answer that it
// heard: charged or not, nobody knows.
func (n *node) unheard(ctx context.Context) (total int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := local.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	found := 0
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), " ")
		switch name {
		case `tidegate_store_answers_total{outcome="error"}`, `tidegate_store_answers_total{outcome="timeout"}`:
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			total += int64(n)
			found++
		}
	}
	if found != 2 {
		return 0, fmt.Errorf("%s/metrics does not tell what became of questions to the store", n.admin)
	}
	return total, nil
}
