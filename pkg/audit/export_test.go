package audit

// Line is the JSON of an event that has at most limit bytes.
func (e Event) Line(limit int) ([]byte, error) { return e.bounded().line(limit) }
