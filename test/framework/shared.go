package framework

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
)

// manyOrgs is a quota that no group of tests reaches: a person makes the Organizations of many tests.
const manyOrgs = 10_000

// shared are the trees of a kcp that tests share, by the Dex at which people log in.
type shared struct {
	mu    sync.Mutex
	trees map[*Dex]*tree
}

// tree is a root workspace with its hubs.
type tree struct {
	root string
	hubs []*Hub
}

// Shared returns n hubs of one tree, for the tests that change nothing but the Organizations that they make. A tree costs as much CPU
// time as seven Organizations, so a test has one of its own only if it needs other options, counts what the platform has (metrics,
// events, all Organizations of a person), changes a person (suspension, sign-up), or damages the hub's own workspaces.
//
// heidi is an admin of the platform (WithAdmin), and no test reaches the quota of Organizations.
func (k *KCP) Shared(t testing.TB, n int) []*Hub {
	t.Helper()
	return k.SharedWithDex(t, nil, n)
}

// SharedWithDex is Shared for the tests whose people log in at a Dex.
func (k *KCP) SharedWithDex(t testing.TB, dex *Dex, n int) []*Hub {
	t.Helper()
	require.NotNil(t, k.shared, "hubs are shared at the kcp of the group alone")
	k.shared.mu.Lock()
	defer k.shared.mu.Unlock()
	s := k.shared.trees[dex]
	if s == nil {
		s = &tree{root: NewRoot()}
		k.shared.trees[dex] = s
	}
	for len(s.hubs) < n {
		// A matrix reads all the records as one person in a few seconds.
		options := []func(*server.Options){WithAdmin, func(o *server.Options) { o.DefaultOrgQuota, o.Limits.AuditReadsPerPerson = manyOrgs, 0 }}
		if dex != nil {
			options = append(options, WithDex(t, dex))
		}
		// It lives longer than the directories of this test.
		dir := filepath.Join(k.Dir, fmt.Sprint(strings.TrimPrefix(s.root, "root:"), "-", len(s.hubs)))
		require.NoError(t, os.Mkdir(dir, 0o700))
		hub, err := newHub(dir, k, s.root, options...)
		require.NoError(t, err)
		s.hubs = append(s.hubs, hub)
	}
	hubs := s.hubs[:n:n]
	t.Cleanup(func() {
		for _, hub := range hubs {
			hub.warned(t)
		}
	})
	return hubs
}

// stopShared stops the hubs that tests shared.
func (k *KCP) stopShared() error {
	var errs []error
	for _, s := range k.shared.trees {
		for _, hub := range s.hubs {
			errs = append(errs, hub.end())
		}
	}
	return errors.Join(errs...)
}
