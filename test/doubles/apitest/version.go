package apitest

import (
	"net/http"
	"strconv"
)

// FirstVersion is the resource version of all objects in a new world.
const FirstVersion = "42"

// Tag returns the ETag of a resource version.
func Tag(version string) string { return `"` + version + `"` }

// IfMatch returns the If-Match header with the ETags of the versions.
func IfMatch(tags ...string) http.Header { return http.Header{"If-Match": tags} }

// Judge is the part of a fake store that evaluates a match.
func Judge(match func(version string) error, version string) error {
	if match == nil {
		return nil
	}
	return match(version)
}

// Next returns the resource version after a change.
func Next(version string) string {
	n, _ := strconv.Atoi(version)
	return strconv.Itoa(n + 1)
}
