// Package streams tests that watches, upgraded connections and half-sent writes end when the right to
// them ends.
package streams

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp is the group's own; TestMain starts it.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
