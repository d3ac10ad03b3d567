package tenancy

import (
	"encoding/json"
	"fmt"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// MaxCostCenter is the length of a cost center in characters.
const MaxCostCenter = 128

// maxBillingLabels is the number of labels that billing has at most.
const maxBillingLabels = 32

const costCenterField = "billing.costCenter"

// BillingEdit changes billing. It returns nil if it takes all of it away, and it does not change its argument.
type BillingEdit func(*v1alpha1.Billing) *v1alpha1.Billing

// BillingOf is the billing of a Workspace: its own, or what an admin of its Organization has given all
// Workspaces since that was written. So one write of the Organization changes that of any number of
// Workspaces at once.
func BillingOf(o *v1alpha1.Organization, w Workspace) v1alpha1.RevisedBilling {
	if o != nil && o.Spec.WorkspaceBilling != nil && o.Spec.WorkspaceBilling.Revision > w.Billing.Revision {
		return *o.Spec.WorkspaceBilling
	}
	return w.Billing
}

// InheritedBilling is what a new Workspace takes from its Organization.
func InheritedBilling(o *v1alpha1.Organization) v1alpha1.RevisedBilling {
	var b v1alpha1.RevisedBilling
	if o.Spec.WorkspaceBilling != nil {
		b.Revision = o.Spec.WorkspaceBilling.Revision
	}
	if o.Spec.Billing != nil {
		b.Billing = *o.Spec.Billing.DeepCopy()
	}
	return b
}

// ApplyBilling gives all Workspaces of an Organization its billing.
func ApplyBilling(o *v1alpha1.Organization) {
	b := InheritedBilling(o)
	b.Revision++
	o.Spec.WorkspaceBilling = &b
}

// EditBilling returns changed billing of a Workspace. A nil edit changes nothing.
func EditBilling(b v1alpha1.RevisedBilling, edit BillingEdit) v1alpha1.RevisedBilling {
	if edit == nil {
		return b
	}
	edited := v1alpha1.RevisedBilling{Revision: b.Revision}
	if to := edit(&b.Billing); to != nil {
		edited.Billing = *to
	}
	return edited
}

// Unbilled reports whether there is nothing to store of the billing of a Workspace.
func Unbilled(b v1alpha1.RevisedBilling) bool {
	return b.Revision == 0 && b.CostCenter == "" && len(b.Labels) == 0
}

// SetWorkspaceBilling sets the billing of a Workspace in its annotations.
func SetWorkspaceBilling(annotations map[string]string, b v1alpha1.RevisedBilling) {
	if Unbilled(b) {
		delete(annotations, v1alpha1.BillingAnnotation)
		return
	}
	// Strings and a number can always be encoded.
	raw, _ := json.Marshal(b)
	annotations[v1alpha1.BillingAnnotation] = string(raw)
}

func workspaceBilling(raw string) (b v1alpha1.RevisedBilling) {
	if raw == "" || json.Unmarshal([]byte(raw), &b) != nil {
		return v1alpha1.RevisedBilling{}
	}
	return b
}

// BillingRules are what the hub requires of billing. They judge what somebody writes; what stands, and
// what a new Workspace takes from its Organization, stays as it is.
type BillingRules struct {
	// Required says that Organizations and Workspaces need a cost center. Personal Organizations, and
	// their Workspaces, do not.
	Required bool
	// Default is the cost center of a new Organization; empty means none.
	Default string
	// Listed reports whether a cost center may be written. nil allows all.
	Listed func(costCenter string) bool
}

// Initial is the billing of a new Organization.
func (r BillingRules) Initial() *v1alpha1.Billing {
	if r.Default == "" {
		return nil
	}
	return &v1alpha1.Billing{CostCenter: r.Default}
}

// Check judges a change of billing.
func (r BillingRules) Check(personal bool, before, after *v1alpha1.Billing) error {
	was, is := costCenter(before), costCenter(after)
	switch {
	case is == was:
	case is != "":
		if r.Listed != nil && !r.Listed(is) {
			return errs.UnprocessableField(costCenterField, "is not one of the cost centers of this hub; ask a platform admin which there are")
		}
	case r.Required && !personal:
		return errs.UnprocessableField(costCenterField, "cannot be taken away, because this hub requires a cost center")
	}
	if after != nil && len(after.Labels) > maxBillingLabels {
		return errs.UnprocessableField("billing.labels", fmt.Sprintf("has at most %d labels", maxBillingLabels))
	}
	return nil
}

// CheckNew judges the billing of something new. before is what it has without a word of the request.
func (r BillingRules) CheckNew(personal bool, before, after *v1alpha1.Billing) error {
	if r.Required && !personal && costCenter(after) == "" {
		return errs.UnprocessableField(costCenterField, "is required; give the account to charge")
	}
	return r.Check(personal, before, after)
}

func costCenter(b *v1alpha1.Billing) string {
	if b == nil {
		return ""
	}
	return b.CostCenter
}
