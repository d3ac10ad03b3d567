// Package identity tests logins, tokens and sessions with Dex as the identity provider.
package identity

import (
	"os"
	"testing"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp and the issuers are the instances that TestMain starts for this package. The ID tokens
// of hasty and counted expire soon, for tests that wait for that. One test has counted to
// itself, and counts the requests there; another stops and restarts mortal. kcp keeps an
// issuer's keys for as long as the issuer says, and would refuse those of a restarted dex. At silent
// every browser has a session. At grouped people are in groups.
var (
	kcp                                          *framework.KCP
	dex, hasty, counted, mortal, silent, grouped *framework.Dex
)

// hastyTokens and countedTokens are the lifetimes of the ID tokens of hasty and counted.
const hastyTokens, countedTokens = 20 * time.Second, 30 * time.Second

func TestMain(m *testing.M) {
	os.Exit(framework.MainWithDex(m, &kcp,
		framework.GroupDex{Dex: &dex},
		framework.GroupDex{Dex: &hasty, Options: framework.DexOptions{IDTokens: hastyTokens}},
		framework.GroupDex{Dex: &counted, Options: framework.DexOptions{IDTokens: countedTokens}},
		framework.GroupDex{Dex: &mortal},
		framework.GroupDex{Dex: &silent, Options: framework.DexOptions{Silent: true}},
		framework.GroupDex{Dex: &grouped, Options: framework.DexOptions{Grouped: true}},
	))
}
