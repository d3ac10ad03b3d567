// Package lifecycle tests sign-up, deletion with its grace period and cascade, and the
// repair of what a person has.
package lifecycle

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp serves this group only; TestMain starts it.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
