package lease

import (
	"time"

	"tidegate.dev/tidegate"
)

// How long a portion lives.
const (
	maxLife = 100 * time.Millisecond
	minLife = 20 * time.Millisecond
)

// least is how many events must come in a life for each instance: fewer are not worth a
// call.
const least = 2

// Life is for how long events of a limit may be taken ahead by one of so many instances; 0
// means that they may not, and that the limit is strict. What refills in a life is held
// back from a bucket, in whole events, so that is half of its burst at most, rounded down.
func Life(l *tidegate.Limit, instances int) time.Duration {
	if !tidegate.Leased.Suits(l.Algorithm) || l.RawTime {
		return 0
	}
	rate := perSecond(l)
	life := maxLife
	if l.Algorithm == tidegate.TokenBucket {
		life = min(life, seconds(float64(l.Capacity()/2)/rate))
	} else if l.Period > 0 {
		life = min(life, l.Period/2)
	}
	if life < minLife || rate*life.Seconds() < float64(least*max(instances, 1)) {
		return 0
	}
	return life
}

// perSecond is how many events a limit admits in a second, in the long run.
func perSecond(l *tidegate.Limit) float64 {
	period := l.Period
	if l.Algorithm == tidegate.Quota {
		const day = 24 * time.Hour
		period = map[tidegate.Calendar]time.Duration{
			tidegate.Day: day, tidegate.Week: 7 * day, tidegate.Month: 31 * day, tidegate.Year: 366 * day,
		}[l.Calendar]
	}
	return float64(l.Events) / period.Seconds()
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, 1) * float64(time.Second)) // no life is longer
}
