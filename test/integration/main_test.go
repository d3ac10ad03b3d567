// Package integration runs the hub, with the race detector on, against a real kcp
// in a process of its own. Every test has a root workspace of its own in it.
package integration

import (
	"fmt"
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/test/framework"
)

var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	logger, err := log.New("console", "error", os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	log.Bridge(logger)
	dir, err := os.MkdirTemp("", "kedge-integration-")
	if err == nil {
		kcp, err = framework.StartKCP(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		_ = kcp.Stop()
		_ = os.RemoveAll(dir)
	}()
	return m.Run()
}
