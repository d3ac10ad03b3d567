package kcptest

import "errors"

// ErrDown is how calls fail.
var ErrDown = errors.New("kcp cannot be reached")

// Calls are those of a hub. The one with the number Fails fails; none where that is
// zero.
type Calls struct {
	Did         []string
	Made, Fails int
	// Late says that the failing call has happened all the same: its answer got lost.
	Late bool
}

// Call makes one.
func (c *Calls) Call(what string, do func()) error {
	if c.Made++; c.Made != c.Fails {
		c.Did = append(c.Did, what)
		do()
		return nil
	}
	if c.Late {
		do()
	}
	return ErrDown
}
