package tidegate

// Receipt says which charge a Decision is about: what [Store.Adjust], [Renewer.Renew] and
// [Reserver.Settle] need to find it again. The store writes it and gets it back as it is;
// whoever returns a part of a charge may move At, as [Store.Adjust] says.
//
// As text a Receipt is a name, by which another process can settle a reservation: neither
// amounts nor keys are in it. Whoever has the name can settle, and so refund; do not hand
// it to clients unless it is bound to them, for example by a signature.
type Receipt struct {
	// At is the store's time of the charge in ticks of 1/1024 µs since the Unix
	// epoch. It is the store's own clock, which need not agree with the caller's.
	// 0 means nobody looked at a counter for this decision; for -1 see Latest. Of a store
	// that keeps slots without a Handle it is also the name of the lease; see Copy.
	At int64
	// Handle names what the store keeps a record of: a reservation, or the slots that
	// were taken. It is zero where there is none.
	Handle Handle
	// Instance is the process whose own counters were charged; 0 means they are shared, or
	// there is no record that others could ask for.
	Instance uint64
	// Apart is, for a request over several servers with clocks of their own, when
	// each of them charged it; nil otherwise.
	Apart *Apart
	// Origin says who decided.
	Origin Origin
	// Place is where a store that has many places keeps the record.
	Place uint16
	// Lease is the number, in this process, of the portion that the limits which are
	// [Leased] were taken from; 0 means none were.
	Lease uint32
}

// Copy is the receipt of copy i of a request for several, by which its slots are renewed
// and given back.
func (r Receipt) Copy(i int64) Receipt {
	if r.At += i; !r.Handle.IsZero() {
		r.Handle = r.Handle.Copy(i)
	}
	return r
}

// Latest returns a receipt for whatever was charged last, by those who decided that r is
// about: [Store.Adjust] gives back by it what nobody has kept the receipt of, from the newest
// event to the oldest that still counts. Turns of a [LeakyBucket] are not given back by it,
// because somebody may wait for them, nor are slots.
func (r Receipt) Latest() Receipt {
	latest := Receipt{At: -1, Origin: r.Origin, Instance: r.Instance}
	if r.Origin == OriginLeased || r.Origin == OriginRemembered { // who were told by the store
		latest.Origin = OriginStore
	}
	return latest
}

// IsLatest reports whether r was made by [Receipt.Latest].
func (r Receipt) IsLatest() bool { return r.At == -1 }

// Apart is when the parts of a charge were made that a store keeps on servers with
// clocks of their own.
type Apart struct {
	// At is as Receipt.At, by the store's name for the part.
	At map[string]int64
	// Local are the counters that a layer before the store charged in this process
	// instead, as their server did not answer: how much later than Receipt.At, by that
	// layer's name for them.
	Local map[string]int64
}
