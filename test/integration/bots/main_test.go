// Package bots tests bots: their life, what their tokens open, and each way by which somebody
// could become a bot or stay in as one.
package bots

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp is the instance that TestMain starts for this package.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
