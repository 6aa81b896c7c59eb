package admin

import (
	"context"
	"errors"
	"net/http"

	"tidegate.dev/tidegate/internal/chain/board"
)

// askFleet puts a question to all instances. It returns their answers, and the instances without one, each
// with the reason.
func (s *server) askFleet(ctx context.Context, topic string, question []byte) (map[board.Node][]byte, []board.Absent, error) {
	answers, missing, err := s.Board.Ask(ctx, topic, question)
	if errors.Is(err, board.ErrLongQuestion) {
		return nil, nil, problemf(http.StatusBadRequest, "The instances cannot be asked: %v.", err)
	}
	return answers, missing, nil // any other error is the reason of those without an answer
}

func absentTexts(missing []board.Absent) (all []string) {
	for _, a := range missing {
		all = append(all, a.String()+": "+a.Why)
	}
	return all
}
