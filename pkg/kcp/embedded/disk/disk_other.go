//go:build !linux

package disk

import (
	"errors"
	"math"
	"os"
)

// Free is not supported on this platform and returns the largest size.
func Free(string) (int64, error) { return math.MaxInt64, nil }

// Usage is not supported on this platform and returns the largest sizes.
func Usage(string) (free, size int64, err error) { return math.MaxInt64, math.MaxInt64, nil }

// Allocate is not supported on this platform.
func Allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }
