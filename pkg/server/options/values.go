package options

import (
	"os"
	"strconv"
)

func validPort(port string, zero bool) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && (n > 0 || zero)
}

func readable(flag, file string, fail func(flag, format string, args ...any)) {
	f, err := os.Open(file)
	if err != nil {
		fail(flag, "%v; name a file that the hub can read", err)
		return
	}
	_ = f.Close()
}
