// Package recent remembers a bounded number of values, least recently used first out.
//
// # Decisions
//
//   - A value is made and changed under one lock, so that two requests cannot both be the first.
//   - The cache has no clock. How long a value holds depends on what it is, and on the clock of its owner.
package recent
