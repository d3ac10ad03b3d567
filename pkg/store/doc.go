// Package store writes the truth to kcp, one object at a time, and turns kcp's
// errors into the hub's. Nothing derived is written here: that is for the
// reconcilers.
package store
