// Package version holds the version of the build.
package version
