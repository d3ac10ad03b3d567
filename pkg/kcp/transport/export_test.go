package transport

import "time"

// Beat sets how often it is looked whether anything came, before anybody listens.
func (p *Health) Beat(d time.Duration) { p.beat = d }
