package tenancy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxEtcdRequest is the default of etcd's --max-request-bytes.
const maxEtcdRequest = 1.5 * 1024 * 1024

// Others choose the names of the places that they put a person into.
func TestIndexEntries_ofTwoThousandPlacesFitIntoOneObject(t *testing.T) {
	t.Parallel()
	for name, worst := range map[string]string{
		"escaped": strings.Repeat("<", tenancy.MaxDisplayName),
		"quoted":  strings.Repeat(`"`, tenancy.MaxDisplayName),
		"long":    strings.Repeat("🙂", tenancy.MaxDisplayName),
		"latin":   strings.Repeat("é", tenancy.MaxDisplayName),
	} {
		for _, rows := range []int{500, 501, 2000} {
			var places []tenancy.IndexedMembership
			deleted := metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
			for i := range rows {
				o := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), CreationTimestamp: deleted}}
				o.Spec.DisplayName, o.Spec.Personal, o.Status.DeletionRequestedAt = worst, true, &deleted
				places = append(places, tenancy.IndexedMembership{
					Org: tenancy.Org{Organization: o}, FirstAdmin: strings.Repeat("a", 63), Role: v1alpha1.RoleMember,
					Workspace: &tenancy.Workspace{UUID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), DisplayName: worst, ClusterID: strings.Repeat("c", 16)},
				})
			}
			entries := tenancy.IndexEntries(places)
			raw, err := json.Marshal(entries)
			require.NoError(t, err)
			t.Logf("%s, %d rows: %d bytes, %d a row", name, rows, len(raw), len(raw)/rows)
			// The rest is for the metadata of the object and of the transaction.
			require.Less(t, len(raw), int(maxEtcdRequest)-64<<10)
			if rows == 500 {
				require.Equal(t, worst, entries[0].OrgDisplayName)
			}
		}
	}
}

func TestIndexedName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 128)
	for _, c := range []struct {
		name string
		rows int
		want string
	}{
		{"ACME", 2000, "ACME"},
		{"", 2000, ""},
		{long, 2000, long},
		{strings.Repeat("<", 128), 500, strings.Repeat("<", 128)},
		{strings.Repeat("<", 128), 501, strings.Repeat("<", 20) + "…"},
		{strings.Repeat("é", 64), 501, strings.Repeat("é", 64)},
		{strings.Repeat("é", 65), 501, strings.Repeat("é", 62) + "…"},
		{strings.Repeat("🙂", 33), 501, strings.Repeat("🙂", 31) + "…"},
	} {
		got := tenancy.IndexedName(c.name, c.rows)
		require.Equal(t, c.want, got)
		raw, err := json.Marshal(got)
		require.NoError(t, err)
		require.True(t, c.rows <= 500 || len(raw) <= 128+2)
	}
}
