// Package paging answers lists: filtered by ?q=, in a stable order, a page at a
// time.
package paging
