package rights

import (
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

// platform adds the kcp queries of this package to framework.Platform.
type platform struct{ framework.Platform }

func newPlatform(t testing.TB, root string) platform { return platform{kcp.Platform(t, root)} }
