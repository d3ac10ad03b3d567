package tenancy

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// statusesAt counts the Memberships in an Org that have a status, as they were at a revision of kcp's store. An empty
// revision is the newest.
func statusesAt(t *testing.T, p platform, org, revision string) (n int) {
	t.Helper()
	get := p.Memberships(p.OrgPath(org)).GetClient().Get().Resource("memberships")
	if revision != "" {
		get = get.Param("resourceVersion", revision).Param("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	}
	var list v1alpha1.MembershipList
	require.NoError(t, get.Do(t.Context()).Into(&list))
	for _, m := range list.Items {
		if m.Status.ObservedGeneration > 0 {
			n++
		}
	}
	return n
}

// A hub that starts finds 1000 changes of one Org and one change of another, which was made last. It is carried out
// among the first. The order is that of the revisions of kcp's store, so that the test depends on no clock.
func TestOrder_aThousandChangesOfAnOrgDoNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	flooder, neighbour := hub.CreateOrg(t, "alice", "Flooder"), hub.CreateOrg(t, "bob", "Neighbour")
	hub.Stop(t)
	const changes = 1000
	var creating errgroup.Group
	creating.SetLimit(8)
	for i := range changes {
		creating.Go(func() error {
			m := tenancy.NewMembership(fmt.Sprintf("a-%04d", i), "", v1alpha1.RoleMember)
			_, err := p.Memberships(p.OrgPath(flooder)).Create(t.Context(), m, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, creating.Wait())
	const last = "z-last"
	made := tenancy.NewMembership(last, "", v1alpha1.RoleMember)
	created, err := p.Memberships(p.OrgPath(neighbour)).Create(t.Context(), made, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, statusesAt(t, p, flooder, created.ResourceVersion), "alice's alone: no hub runs")

	framework.StartHub(t, kcp, root)
	revision := ""
	framework.Eventually(t, framework.Long, func() error {
		m, err := p.Memberships(p.OrgPath(neighbour)).Get(t.Context(), last, metav1.GetOptions{})
		if err != nil {
			return err
		}
		revision = m.ResourceVersion
		return framework.Check(m.Status.ObservedGeneration > 0, "the neighbour's change is not carried out")
	})
	before := statusesAt(t, p, flooder, revision)
	t.Logf("%d of the %d changes were carried out before the neighbour's", before-1, changes)
	require.Less(t, before, changes/10)
	framework.NowAndThen(t, func() error { return framework.Equal(changes+1, statusesAt(t, p, flooder, "")) })
}
