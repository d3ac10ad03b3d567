// Package paging answers list requests: filtered by ?q=, in a stable order, one page at a
// time.
package paging
