// Package authorization asks every route as every caller, attacks the parsing of requests, and tests the
// border around the workspaces of the hub.
package authorization

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp is the group's own; TestMain starts it.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
