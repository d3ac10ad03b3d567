// Package repair tests that the hub finds and repairs what was damaged in kcp: bindings, roles,
// Workspaces, and what verify names.
package repair

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp serves this group only; TestMain starts it.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
