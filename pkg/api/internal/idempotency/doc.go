// Package idempotency reads the body of a create request together with its Idempotency-Key.
// A repeated key of the same caller returns the object that the first request created.
package idempotency
