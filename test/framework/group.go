package framework

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// Main runs a group of integration tests, which is one package, with a kcp of its own. It
// sets kcp for the tests and returns the exit code for TestMain. A goroutine that runs
// after the last test fails the group, because a hub must end everything that it started.
func Main(m *testing.M, kcp **KCP) (code int) { return MainWithDex(m, kcp) }

// GroupDex is an identity provider of a group: Main sets Dex for the tests.
type GroupDex struct {
	Dex     **Dex
	Options DexOptions
}

// MainWithDex is Main for a group with identity providers, whose tokens kcp accepts.
func MainWithDex(m *testing.M, kcp **KCP, issuers ...GroupDex) (code int) {
	return run(m, issuers, func(dir string, started []*Dex) (stop func() error, err error) {
		if *kcp, err = StartKCP(dir, started...); err != nil {
			return nil, err
		}
		return func() error {
			err := (*kcp).stopShared()
			_ = (*kcp).Stop()
			return err
		}, nil
	})
}

// MainSharded is Main for a group with a kcp of several shards: the root shard and others.
func MainSharded(m *testing.M, kcp **ShardedKCP, others ...string) (code int) {
	return run(m, nil, func(dir string, _ []*Dex) (stop func() error, err error) {
		if *kcp, err = StartShardedKCP(dir, others...); err != nil {
			return nil, err
		}
		return func() error {
			(*kcp).Stop()
			return nil
		}, nil
	})
}

func run(m *testing.M, issuers []GroupDex, start func(dir string, started []*Dex) (stop func() error, err error)) (code int) {
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
	// With the default settings kcp spends a fifth of its CPU time on garbage collection, and more as it
	// comes near a limit. Two groups run at once, so each may take a third of the machine's memory.
	for name, value := range map[string]string{"GOGC": "300", "GOMEMLIMIT": memoryLimit()} {
		if os.Getenv(name) == "" {
			if err := os.Setenv(name, value); err != nil {
				return failed(err)
			}
		}
	}
	before := goleak.IgnoreCurrent()
	var started []*Dex
	for i, issuer := range issuers {
		if *issuer.Dex, err = StartDex(filepath.Join(dir, fmt.Sprintf("dex-%d", i)), issuer.Options); err != nil {
			return failed(err)
		}
		started = append(started, *issuer.Dex)
	}
	stop, err := start(dir, started)
	if err != nil {
		return failed(err)
	}
	code = m.Run()
	if err := stop(); err != nil {
		code = failed(err)
	}
	for _, dex := range started {
		dex.Kill()
	}
	if code = Documented(code); code == 0 {
		if err := goleak.Find(before); err != nil {
			return failed(err)
		}
	}
	return code
}

// memoryLimit is a third of the machine's memory, or 4 GiB where Linux does not tell it.
func memoryLimit() string {
	raw, _ := os.ReadFile("/proc/meminfo")
	var kibibytes uint64
	if n, _ := fmt.Sscanf(string(raw), "MemTotal: %d kB", &kibibytes); n != 1 {
		return "4GiB"
	}
	return fmt.Sprintf("%dKiB", kibibytes/3)
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
