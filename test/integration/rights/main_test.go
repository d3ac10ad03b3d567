// Package rights tests the roles in child Workspaces: what they allow, sudo, further roles, and the
// APIs that tenants and providers define.
package rights

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp is the group's own; TestMain starts it.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
