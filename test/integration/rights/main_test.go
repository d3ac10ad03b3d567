// Package rights tests the roles in Workspaces: their permissions, sudo, extra roles, and the APIs that
// tenants and providers define.
package rights

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp is the instance that TestMain starts for this package.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
