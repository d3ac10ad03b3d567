package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestMark_repeatedDoesNotExtendTheGracePeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	before := metav1.NewTime(now.Add(-time.Hour))
	for _, c := range []struct {
		requested *metav1.Time
		deleted   bool
		want      *metav1.Time
	}{
		{nil, true, ptr.To(metav1.NewTime(now.UTC()))},
		{&before, true, &before},
		{&before, false, nil},
		{nil, false, nil},
	} {
		d := tenancy.Deletable{Noun: "workspace", Requested: c.requested}
		got, err := d.Mark(c.deleted, now)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		d.Removing = true
		_, err = d.Mark(c.deleted, now)
		require.True(t, errs.Is(err, errs.NotFound), "its grace is over: %v", err)
	}
}

func TestDeletionIndexed_readsItsOwnRow(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Unix(1, 0))
	rows := []v1alpha1.MembershipIndexEntry{{OrgUUID: "o"}, {OrgUUID: "o", WorkspaceUUID: "w", SoftDeletedAt: &at}}
	for _, deleted := range []bool{true, false} {
		require.Equal(t, !deleted, tenancy.DeletionIndexed(rows, "o", "", deleted))
		require.Equal(t, deleted, tenancy.DeletionIndexed(rows, "o", "w", deleted))
		require.True(t, tenancy.DeletionIndexed(rows, "o", "another", deleted), "there is no row to wait for")
	}
}

func TestSeesDeleted_isForMembersOfTheWorkspaceAndAdminsOfItsOrg(t *testing.T) {
	t.Parallel()
	type rows = []v1alpha1.MembershipIndexEntry
	row := func(org, workspace string, role v1alpha1.Role) v1alpha1.MembershipIndexEntry {
		return v1alpha1.MembershipIndexEntry{OrgUUID: org, WorkspaceUUID: workspace, Role: role, Manager: role == ""}
	}
	for name, c := range map[string]struct {
		rows rows
		want bool
	}{
		"an Org admin":                         {rows{row("o", "", "admin")}, true},
		"an Org admin who is a member":         {rows{row("o", "", "admin"), row("o", "w", "member")}, true},
		"a member of the Workspace":            {rows{row("o", "w", "member")}, true},
		"a manager of the Workspace":           {rows{row("o", "w", "")}, true},
		"an Org member":                        {rows{row("o", "", "member")}, false},
		"an admin of another Workspace":        {rows{row("o", "", "member"), row("o", "x", "admin")}, false},
		"an admin of another Org":              {rows{row("p", "", "admin")}, false},
		"an admin of that Workspace elsewhere": {rows{row("p", "w", "admin")}, false},
		"somebody without a Membership":        {},
	} {
		require.Equal(t, c.want, tenancy.SeesDeleted(c.rows, "o", "w"), name)
	}
}

// A grace period of five seconds lasts five seconds, at whatever fraction of a second it
// begins.
func TestRequestedAt_roundsUp(t *testing.T) {
	t.Parallel()
	whole := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for part, want := range map[time.Duration]time.Time{
		0: whole, 1: whole.Add(time.Second), time.Second / 2: whole.Add(time.Second), time.Second - 1: whole.Add(time.Second), time.Second: whole.Add(time.Second),
	} {
		require.Equal(t, want, tenancy.RequestedAt(whole.Add(part)).Time, part)
	}
}
