// Package lifecycle tests sign-up, deletion with its grace and its cascade, and the repair of every
// object that the hub keeps.
package lifecycle

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp is the group's own; TestMain starts it.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
