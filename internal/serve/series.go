package serve

import (
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/telemetry/series"
)

// recorder records recent decisions until it is closed.
type recorder struct {
	*series.Recorder
	done, ended chan struct{}
}

func (r *recorder) start(read func() []series.Total) {
	r.Recorder, r.done, r.ended = series.New(read), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(r.ended)
		r.Run(r.done)
	}()
}

func (r *recorder) close() {
	if r.Recorder != nil {
		close(r.done)
		<-r.ended
	}
}

// answerSeries answers the question of another instance about what was decided here.
func (s *server) answerSeries(question []byte) []byte {
	return admin.AnswerSeries(question, s.series())
}

// series returns the recent decisions for /series.
func (s *server) series() admin.Series {
	from, lines := s.lately.Lines()
	is := admin.Series{Nodes: []string{s.nodeName()}, From: from.UTC(), Step: int(series.Step.Seconds()), Lines: make([]admin.Line, len(lines))}
	for i, l := range lines {
		is.Lines[i] = admin.Line(l)
	}
	return is
}
