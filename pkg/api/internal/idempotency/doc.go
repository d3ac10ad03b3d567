// Package idempotency reads the Idempotency-Key of a request: who repeats one gets
// what the first made.
package idempotency
