package apitest

import (
	"net/http"
	"strconv"
)

// FirstVersion is the resource version of everything in the standing world.
const FirstVersion = "42"

// Tag is the ETag of what has the resource version.
func Tag(version string) string { return `"` + version + `"` }

// IfMatch is the header of a request on the condition of those ETags.
func IfMatch(tags ...string) http.Header { return http.Header{"If-Match": tags} }

// Judge is the part of a store that keeps a condition.
func Judge(match func(version string) error, version string) error {
	if match == nil {
		return nil
	}
	return match(version)
}

// Next is the resource version after a change.
func Next(version string) string {
	n, _ := strconv.Atoi(version)
	return strconv.Itoa(n + 1)
}
