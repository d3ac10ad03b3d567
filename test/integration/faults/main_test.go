// Package faults tests the hub while kcp fails, restarts or answers badly, and while leaders change.
package faults

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

// kcp is the group's own; TestMain starts it.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
