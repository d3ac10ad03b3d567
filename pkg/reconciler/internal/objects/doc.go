// Package objects holds the writes to kcp that several controllers share: create an
// object unless it exists, replace it, delete it with preconditions, and patch it.
//
// Every func is generic over a typed client of one kind in one logical cluster. An
// error that another writer causes (Conflict, AlreadyExists, NotFound) comes back as
// controller.ErrRetry: the next pass reads the newer object from the cache.
package objects
