package apitest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Deps are what a handler needs, with the world for the caches, at Epoch. newUUID is the identity of
// everything that is made.
func (w *World) Deps(t testing.TB, store api.Store, newUUID string) api.Deps {
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	return api.Deps{
		Views: w, Store: store, Rights: w.Rights(), Scopes: httpmw.Scopes{Tenants: w, Creator: w.Creator()}, Tree: tree,
		NewUUID: func() string { return newUUID }, Clock: clocktesting.NewFakePassiveClock(Epoch().Time), Streams: w,
		ExternalURL: HubURL, CA: func() []byte { return []byte("ca") },
		DefaultOrgQuota: 10, DefaultWorkspaceQuota: 50, Graces: tenancy.Graces{Deletion: 720 * time.Hour, Expired: 24 * time.Hour},
		CreateTimeout: time.Minute, FollowTimeout: time.Minute,
	}
}
