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

// least is how many events per life a limit must admit for each instance, and how many events a
// portion is asked for at least: fewer are not worth a call.
const least = 2

// Life returns how long before their use an instance may take events of l, if so many instances
// share it; 0 means that it may not, so that l is strict. A bucket holds back what it refills in a
// life, so a life is at most as long as half of its burst, rounded down, takes to refill. For a
// window it is at most half of the period.
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

// perSecond returns how many events a limit admits per second in the long run.
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

// seconds returns s seconds as a Duration, at most one second.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 1) * float64(time.Second)) // no life is longer
}
