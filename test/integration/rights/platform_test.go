package rights

import (
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

// platform adds to framework.Platform what this group alone asks of kcp.
type platform struct{ framework.Platform }

func newPlatform(t testing.TB, root string) platform { return platform{kcp.Platform(t, root)} }
