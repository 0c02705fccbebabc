package workloads

// Chain identifies the content of a request's tokens, so that an engine can tell
// which prefixes are equal. Tokens are numbered in units; equal unit ids mean
// equal content up to and including that unit. The zero value is unknown content
// that nothing else shares.
type Chain struct {
	IDs        []uint64 // explicit ids (a trace); else
	Group      uint64   // content of the first GroupUnits units: a shared system prompt
	GroupUnits int32
	Session    uint64 // content of the units after it: a conversation
	UnitSize   int32  // tokens per unit
}

// wholeSequence is the unit of private content: one unit holds all of it.
const wholeSequence = 1 << 30

// Private is content that only this request has.
func Private(key uint64) Chain { return Chain{Session: spread(key, 7), UnitSize: wholeSequence} }

// Known tells whether the content has an identity.
func (c *Chain) Known() bool { return c.UnitSize > 0 }

// UnitTokens returns the tokens per unit.
func (c *Chain) UnitTokens() int32 { return c.UnitSize }

// Unit returns the id of unit u, never 0.
func (c *Chain) Unit(u int32) uint64 {
	switch {
	case int(u) < len(c.IDs):
		return spread(c.IDs[u], 1) | 1
	case u < c.GroupUnits:
		return spread(c.Group, uint64(u)<<2|2) | 1
	}
	return spread(c.Session, uint64(u)<<2|3) | 1
}

// spread mixes a key and a number into an id (splitmix64's finaliser).
func spread(key, n uint64) uint64 {
	x := key*0x9e3779b97f4a7c15 + n*0xbf58476d1ce4e5b9
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Key stands for the conversation, or for the shared beginning where there is none.
func (c *Chain) Key() uint64 {
	switch {
	case len(c.IDs) > 0:
		return spread(c.IDs[0], 5)
	case c.Session != 0:
		return spread(c.Session, 5)
	}
	return spread(c.Group, 5)
}
