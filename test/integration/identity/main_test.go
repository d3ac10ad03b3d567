// Package identity tests logins, tokens and sessions with Dex as the identity provider.
package identity

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

// kcp and dex are the instances that TestMain starts for this package.
var (
	kcp *framework.KCP
	dex *framework.Dex
)

func TestMain(m *testing.M) { os.Exit(framework.MainWithDex(m, &kcp, &dex)) }
