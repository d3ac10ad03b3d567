//go:build !failpoints

package transport

// newFailPoints returns nil: a program without the build tag failpoints has no fail points.
func newFailPoints() layer { return nil }
