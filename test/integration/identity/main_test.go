// Package identity tests logins, tokens and sessions with Dex as the identity provider.
package identity

import (
	"os"
	"testing"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp, dex and hasty are the instances that TestMain starts for this package. The ID tokens
// of hasty expire soon, for tests that wait for that.
var (
	kcp        *framework.KCP
	dex, hasty *framework.Dex
)

// hastyTokens is the lifetime of the ID tokens of hasty.
const hastyTokens = 20 * time.Second

func TestMain(m *testing.M) {
	os.Exit(framework.MainWithDex(m, &kcp,
		framework.GroupDex{Dex: &dex},
		framework.GroupDex{Dex: &hasty, Options: framework.DexOptions{IDTokens: hastyTokens}},
	))
}
