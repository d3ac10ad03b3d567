// Package inflight bounds the work that is in progress at once: in a Room that owners
// share, and in Rooms for each key by itself.
//
// # Decisions
//
//   - Work has a weight, because a list of a full Workspace costs what thousands of small requests cost.
//   - What finds no room waits for a bounded time, and a bounded number of pieces waits. Both ends are
//     ErrFull, for which the caller has an answer that its client understands.
//   - Owners that wait for a Room take turns, so that the work of one delays that of another by one
//     piece. The next piece waits until it fits: light work does not overtake heavy work for ever.
package inflight
