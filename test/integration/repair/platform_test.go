package repair

import (
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

// platform adds the helpers of this group to framework.Platform.
type platform struct{ framework.Platform }

func newPlatform(t testing.TB, root string) platform { return platform{kcp.Platform(t, root)} }
