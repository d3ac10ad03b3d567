// Package authorization calls every route as every kind of caller and attacks the parsing of requests.
// It also checks that tenants cannot reach the hub's own workspaces.
package authorization

import (
	"os"
	"testing"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp and dex are the instances that TestMain starts for this package.
var (
	kcp *framework.KCP
	dex *framework.Dex
)

// idTokens is the lifetime of the ID tokens of dex. A test waits until one has expired.
const idTokens = 20 * time.Second

func TestMain(m *testing.M) {
	os.Exit(framework.MainWithDex(m, &kcp, framework.GroupDex{Dex: &dex, Options: framework.DexOptions{IDTokens: idTokens}}))
}
