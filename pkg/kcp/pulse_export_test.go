package kcp

import "time"

// Beat sets how often it is looked whether anything came, before anybody listens.
func (c *Clients) Beat(d time.Duration) { c.pulse.beat = d }
