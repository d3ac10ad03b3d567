package framework

import (
	"fmt"
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// Main runs a group of integration tests, which is one package, with a kcp of its own.
// It sets kcp for the tests and returns the exit code for TestMain.
func Main(m *testing.M, kcp **KCP) (code int) {
	logger, err := log.New("console", "error", os.Stderr)
	if err != nil {
		return failed(err)
	}
	log.Bridge(logger)
	dir, err := os.MkdirTemp("", "kedge-integration-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if *kcp, err = StartKCP(dir); err != nil {
		return failed(err)
	}
	defer func() { _ = (*kcp).Stop() }()
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
