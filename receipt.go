package tidegate

// Receipt identifies the charge of a Decision: [Store.Adjust], [Renewer.Renew] and
// [Reserver.Settle] find it by the Receipt. The store writes it and gets it back as it is,
// except that a caller that returns a part of a charge may move At; see [Store.Adjust].
//
// As text a Receipt is a name, by which another process can settle a reservation: neither
// amounts nor keys are in it. Whoever has the name can settle, and so refund; do not hand
// it to clients unless it is bound to them, for example by a signature.
type Receipt struct {
	// At is the store's time of the charge in ticks of 1/1024 µs since the Unix
	// epoch. It is the store's own clock, which need not agree with the caller's.
	// 0 means that no counter was read for this decision; for -1 see Latest. In a store
	// that keeps slots without a Handle it also names the lease; see Copy.
	At int64
	// Handle names what the store keeps a record of: a reservation, or the slots that
	// were taken. It is zero where there is none.
	Handle Handle
	// Instance names the process whose own counters were charged; 0 means that they are shared,
	// or that there is no record that another process could ask for.
	Instance uint64
	// Apart is, for a request over several servers with clocks of their own, when
	// each of them charged it; nil otherwise.
	Apart *Apart
	// Origin says who decided.
	Origin Origin
	// Place says in which of several places a store keeps the record.
	Place uint16
	// Lease is the number, in this process, of the portion from which [Leased] limits were
	// charged; 0 means none were.
	Lease uint32
}

// Copy returns the receipt of copy i of a request for several copies, by which the slots of
// that copy are renewed and given back.
func (r Receipt) Copy(i int64) Receipt {
	if r.At += i; !r.Handle.IsZero() {
		r.Handle = r.Handle.Copy(i)
	}
	return r
}

// Latest returns a receipt for whatever was charged last to the counters that r is about. With
// it, [Store.Adjust] gives back charges whose receipts were not kept, from the newest event to
// the oldest that still counts. It does not give back turns of a [LeakyBucket], because
// somebody may wait for them, nor slots.
func (r Receipt) Latest() Receipt {
	latest := Receipt{At: -1, Origin: r.Origin, Instance: r.Instance}
	if r.Origin == OriginLeased || r.Origin == OriginRemembered { // the store has decided these
		latest.Origin = OriginStore
	}
	return latest
}

// IsLatest reports whether r was made by [Receipt.Latest].
func (r Receipt) IsLatest() bool { return r.At == -1 }

// Apart says when the parts of a charge were made, if they are on servers with clocks of
// their own.
type Apart struct {
	// At is as Receipt.At, by the store's name for the part.
	At map[string]int64
	// Local says of each counter that a layer in front of the store has charged in this
	// process, and not in the store, how many ticks later than Receipt.At that was. The
	// keys are that layer's names for the counters.
	Local map[string]int64
}
