// Package tenancy tests Orgs, Workspaces and Memberships: quotas, races, ETags, the
// index, the schemas and the Workspace template.
package tenancy

import (
	"os"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

type call = framework.Call

// kcp serves this group only; TestMain starts it.
var kcp *framework.KCP

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &kcp)) }
