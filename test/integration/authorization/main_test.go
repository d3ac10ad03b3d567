// Package authorization calls every route as every kind of caller and attacks the parsing of requests.
// It also checks that tenants cannot reach the hub's own workspaces.
package authorization

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp is the instance that TestMain starts for this package.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
