package tenancy_test

import (
	"fmt"
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func charged(costCenter string) *v1alpha1.Billing { return &v1alpha1.Billing{CostCenter: costCenter} }

func TestBillingRules_judgeWhatIsWritten(t *testing.T) {
	t.Parallel()
	listed := func(costCenter string) bool { return costCenter == "4711" || costCenter == "12" }
	for name, test := range map[string]struct {
		required, personal, isNew bool
		before, after             *v1alpha1.Billing
		want                      string
	}{
		"one of the list":                      {after: charged("4711")},
		"one that the list does not have":      {after: charged("13"), want: "is not one of the cost centers"},
		"one of a personal Organization":       {personal: true, after: charged("13"), want: "is not one of the cost centers"},
		"one that the list lost stays":         {before: charged("13"), after: charged("13")},
		"one that the list lost is replaced":   {before: charged("13"), after: charged("12")},
		"one is taken away":                    {before: charged("12"), after: charged("")},
		"all is taken away":                    {before: charged("12")},
		"a required one is taken away":         {required: true, before: charged("12"), after: charged(""), want: "cannot be taken away"},
		"all of a required one is taken away":  {required: true, before: charged("12"), want: "cannot be taken away"},
		"a personal one is taken away":         {required: true, personal: true, before: charged("12")},
		"one that was never there stays away":  {required: true, after: &v1alpha1.Billing{Labels: map[string]v1alpha1.BillingValue{"team": "web"}}},
		"something new without a required one": {required: true, isNew: true, want: "is required"},
		"something new with a required one":    {required: true, isNew: true, after: charged("12")},
		"something new that inherits one":      {required: true, isNew: true, before: charged("13"), after: charged("13")},
		"something new that drops one":         {required: true, isNew: true, before: charged("12"), after: charged(""), want: "is required"},
		"something new of a person":            {required: true, personal: true, isNew: true},
		"something new with one not listed":    {isNew: true, after: charged("13"), want: "is not one of the cost centers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := tenancy.BillingRules{Required: test.required, Listed: listed}
			check := rules.Check
			if test.isNew {
				check = rules.CheckNew
			}
			err := check(test.personal, test.before, test.after)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, errs.Is(err, errs.Unprocessable))
			require.ErrorContains(t, err, "billing.costCenter: "+test.want)
		})
	}
	require.NoError(t, tenancy.BillingRules{}.Check(false, nil, charged("any")))
}

func TestBillingRules_limitTheLabels(t *testing.T) {
	t.Parallel()
	labels := func(n int) *v1alpha1.Billing {
		b := &v1alpha1.Billing{Labels: map[string]v1alpha1.BillingValue{}}
		for i := range n {
			b.Labels[fmt.Sprint(i)] = "v"
		}
		return b
	}
	require.NoError(t, tenancy.BillingRules{}.Check(false, nil, labels(32)))
	require.ErrorContains(t, tenancy.BillingRules{}.Check(false, nil, labels(33)), "billing.labels: has at most 32")
}

func TestBillingRules_giveNewOrganizationsTheDefault(t *testing.T) {
	t.Parallel()
	require.Nil(t, tenancy.BillingRules{}.Initial())
	require.Equal(t, charged("4711"), tenancy.BillingRules{Default: "4711"}.Initial())
}

// One write of the Organization changes the billing of all Workspaces, and none of those that are written
// after it.
func TestBillingOf_isTheLaterOfTwoWrites(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.Organization{}
	o.Spec.Billing = charged("1")
	untouched, own := tenancy.Workspace{}, tenancy.Workspace{Billing: v1alpha1.RevisedBilling{Billing: *charged("2")}}
	of := func(w tenancy.Workspace) string { return tenancy.BillingOf(o, w).CostCenter }
	require.Equal(t, []string{"", "2"}, []string{of(untouched), of(own)}, "a change of the Organization leaves them")

	tenancy.ApplyBilling(o)
	require.Equal(t, []string{"1", "1"}, []string{of(untouched), of(own)})
	o.Spec.Billing.CostCenter = "3"
	require.Equal(t, []string{"1", "1"}, []string{of(untouched), of(own)}, "what is given is not changed later")

	later := tenancy.Workspace{Billing: tenancy.EditBilling(tenancy.BillingOf(o, own), func(*v1alpha1.Billing) *v1alpha1.Billing { return charged("4") })}
	made := tenancy.Workspace{Billing: tenancy.InheritedBilling(o)}
	emptied := tenancy.Workspace{Billing: tenancy.EditBilling(tenancy.BillingOf(o, own), func(*v1alpha1.Billing) *v1alpha1.Billing { return nil })}
	require.Equal(t, []string{"4", "3", ""}, []string{of(later), of(made), of(emptied)})

	tenancy.ApplyBilling(o)
	require.Equal(t, []string{"3", "3", "3", "3"}, []string{of(own), of(later), of(made), of(emptied)})
	require.Empty(t, tenancy.BillingOf(nil, untouched).CostCenter)
}

func TestWorkspaceBilling_isKeptInItsAnnotation(t *testing.T) {
	t.Parallel()
	labels := map[string]v1alpha1.BillingValue{"team": `"we<b>"`}
	for name, b := range map[string]v1alpha1.RevisedBilling{
		"none": {}, "a cost center": {Billing: *charged("4711")}, "labels": {Billing: v1alpha1.Billing{Labels: labels}},
		"nothing that was written": {Revision: 3}, "all": {Billing: v1alpha1.Billing{CostCenter: "1", Labels: labels}, Revision: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ws := &kcptenancyv1alpha1.Workspace{}
			ws.Annotations = map[string]string{v1alpha1.BillingAnnotation: `{"costCenter":"before"}`}
			tenancy.SetWorkspaceBilling(ws.Annotations, b)
			require.Equal(t, b, tenancy.WorkspaceOf("acme", ws).Billing)
			_, stored := ws.Annotations[v1alpha1.BillingAnnotation]
			require.Equal(t, name != "none", stored)
		})
	}
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Annotations = map[string]string{v1alpha1.BillingAnnotation: `{"costCenter":"1","revision":"x"}`}
	require.Zero(t, tenancy.WorkspaceOf("acme", ws).Billing)
}
