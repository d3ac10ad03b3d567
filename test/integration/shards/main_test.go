// Package shards tests hubs in front of a kcp with several shards: a root shard and a second one,
// a cache server and a front proxy. What people do must not depend on the shard that their
// Workspaces lie on, and a shard that is down must hurt nobody else.
package shards

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// second is the shard beside the root shard.
const second = "two"

// kcp is the instance that TestMain starts for this package.
var kcp *framework.ShardedKCP

func TestMain(m *testing.M) { os.Exit(framework.MainSharded(m, &kcp, second)) }
