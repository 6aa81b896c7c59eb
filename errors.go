package tidegate

import "errors"

var (
	// ErrFull is in Decision.Err when a store at its memory bound has no room for
	// a new key, as its limit's OnFull asks.
	ErrFull = errors.New("store is full of keys that are being held back")
	// ErrLeaseLost is returned by Renew when a lease had run out, and by [Gate.Renew] for a
	// ticket without slots.
	ErrLeaseLost = errors.New("lease ran out before it was renewed")
	// ErrSettled is returned by Settle when there is nothing to settle: done
	// before, or its time is over.
	ErrSettled = errors.New("reservation is settled or has expired")
	// ErrElsewhere is returned by Settle, Adjust and Renew for the receipt of another
	// process, which charged counters of its own. Nothing is changed: an estimate stays
	// charged.
	ErrElsewhere = errors.New("the receipt is of counters that another process has")
	// ErrUnsupported is returned when a store lacks an optional ability, such
	// as holding slots.
	ErrUnsupported = errors.New("store does not support this")
	// ErrCannotAsk is returned, wrapped, by a store that works but cannot answer this
	// request: a key holds a value of another kind, or a command is forbidden. Other
	// requests are not affected.
	ErrCannotAsk = errors.New("the store cannot be asked this")
	// ErrWait is returned by Wait when the turn would come after the deadline
	// of the context; nothing was charged.
	ErrWait = errors.New("the wait would pass the deadline")
	// ErrNever is returned by Wait when the cost is above the limit's capacity.
	ErrNever = errors.New("the cost is above what the limit can ever admit")
)
