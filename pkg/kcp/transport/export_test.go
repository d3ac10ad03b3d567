package transport

import "time"

// SetInterval sets the time between two looks of the prober, before it starts.
func (h *Health) SetInterval(d time.Duration) { h.interval = d }
