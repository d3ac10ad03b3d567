// Package catalog tests the catalog of providers: who publishes an entry, who sees it, and what
// becomes of it in a Workspace.
package catalog

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp is the instance that TestMain starts for this package.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
