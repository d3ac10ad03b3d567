// Package idempotency reads what a request is to make, and its Idempotency-Key: who
// repeats one gets what the first made.
package idempotency
