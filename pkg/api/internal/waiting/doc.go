// Package waiting holds the steps that all handlers of writes share: write the intent to the
// audit log, and wait until the caches show the write.
package waiting
