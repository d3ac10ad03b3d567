package tenancy

import (
	"slices"
	"strings"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// CheckCatalogExport refuses an APIExport that no entry of the place may name. org is the UUID
// of the Organization, or empty for a Global entry. An entry may name an export in a workspace
// below providers; an entry of an Organization also one in a Workspace of it, whose UUID is
// then returned.
func CheckCatalogExport(tree Tree, org string, ref v1alpha1.APIExportRef) (workspace string, err error) {
	if ReservedExport(ref.Name) {
		return "", errs.UnprocessableField("apiExport.name", "is an export of kcp or of the hub, which no catalog entry may name")
	}
	if strings.HasPrefix(ref.Path, tree.Providers()+":") {
		return "", nil
	}
	if org == "" {
		return "", errs.UnprocessableField("apiExport.path", "must be a workspace below "+tree.Providers())
	}
	if in, workspace, ok := tree.ParseWorkspacePath(ref.Path); ok && in == org {
		return workspace, nil
	}
	return "", errs.UnprocessableField("apiExport.path", "must be a workspace below "+tree.Providers()+", or a workspace of this organization")
}

// PublishingWorkspace returns the Workspace in which kcp is asked whether a person may bind an
// export that they publish in the Organization: the oldest of those that are Ready and of which
// they are admin. entries are the rows of their index; ok is false if there is none.
func PublishingWorkspace(entries []v1alpha1.MembershipIndexEntry, org Org, workspaces []Workspace) (oldest Workspace, ok bool) {
	for _, w := range workspaces {
		if w.Deleted() || !w.Ready() || !WorkspaceRole(entries, org.UUID(), w.UUID, org.Spec.DefaultAccess).AtLeast(v1alpha1.RoleAdmin) {
			continue
		}
		if by := w.CreatedAt.Compare(oldest.CreatedAt.Time); !ok || by < 0 || by == 0 && w.UUID < oldest.UUID {
			oldest, ok = w, true
		}
	}
	return oldest, ok
}

// ProbeBinding returns the APIBinding with which kcp is asked, by a dry run, whether somebody may
// bind an export.
func ProbeBinding(ref v1alpha1.APIExportRef) *kcpapisv1alpha2.APIBinding {
	b := &kcpapisv1alpha2.APIBinding{}
	b.GenerateName = "kedge-publish-"
	b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: ref.Path, Name: ref.Name}
	return b
}

// maxExport is the maximum size, in bytes, of the resources and claims of an export. They are
// stored with each entry that names the export, and listed with it.
const maxExport = 64 << 10

// ExportTooLarge reports whether an APIExport has more resources and claims than the catalog
// stores. Tenants write their own exports, and many entries may name one.
func ExportTooLarge(export *kcpapisv1alpha2.APIExport) bool {
	const overhead = 16
	size := 0
	for i := range export.Spec.Resources {
		r := &export.Spec.Resources[i]
		size += overhead + len(r.Group) + len(r.Name)
	}
	for i := range export.Spec.PermissionClaims {
		c := &export.Spec.PermissionClaims[i]
		size += overhead + len(c.Group) + len(c.Resource) + len(c.IdentityHash)
		for _, verb := range c.Verbs {
			size += len(verb) + 1
		}
	}
	return size > maxExport
}

// ReservedExport reports whether an APIExport of that name is one of kcp's or of the hub's own.
func ReservedExport(name string) bool {
	return name == ExportTenancy || name == ExportAccess || name == "kcp.io" || strings.HasSuffix(name, ".kcp.io")
}

// DangerousClaim reports whether a permission claim lets the provider read all Secrets of a
// Workspace or take it over. selector are the objects that the claim is for; nil for all.
func DangerousClaim(group, resource string, verbs []string, selector *kcpapisv1alpha2.PermissionClaimSelector) bool {
	// A requirement that a label is missing, or has another value, is met by almost all objects.
	all := selector == nil || selector.MatchAll || len(selector.MatchLabels) == 0 &&
		!slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
			return r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpExists
		})
	switch {
	case slices.Contains(verbs, "*"), resource == "*", group == "*":
		return true
	case group == "" && resource == "secrets":
		return all
	case group == "apis.kcp.io":
		return resource == "apibindings"
	}
	return group == rbacv1.GroupName
}

// acceptableClaim reports whether the admission policy of a Workspace lets its admins accept a
// permission claim: one on another group than those of kcp and the hub, one that only reads, or
// one on what the admin role may change.
func acceptableClaim(group, resource string, verbs []string) bool {
	reads := len(verbs) > 0 && !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(read, verb) })
	return tenantGroup(group) || reads || slices.Contains(adminRights()[group][resource], "create")
}

// ClaimsAnswered refuses answers that are not one for each permission claim of an export:
// accepted and rejected list the claims that the person accepts and those that they do not.
func ClaimsAnswered(claims []v1alpha1.CatalogClaim, accepted, rejected []v1alpha1.CatalogResource) error {
	var causes []errs.Cause
	fail := func(field, message string) {
		causes = append(causes, errs.Cause{Type: "FieldValueInvalid", Field: field, Message: message})
	}
	has := func(list []v1alpha1.CatalogResource, r v1alpha1.CatalogResource) bool {
		return slices.Contains(list, r)
	}
	asked := func(r v1alpha1.CatalogResource) bool {
		return slices.ContainsFunc(claims, func(c v1alpha1.CatalogClaim) bool { return r == claimed(c) })
	}
	for field, list := range map[string][]v1alpha1.CatalogResource{"acceptClaims": accepted, "rejectClaims": rejected} {
		for _, r := range list {
			if !asked(r) {
				fail(field, ResourceName(r.Group, r.Resource)+" is not a claim of this provider; leave it out")
			}
		}
	}
	for i, c := range claims {
		r := claimed(c)
		switch name := ResourceName(r.Group, r.Resource); {
		case slices.ContainsFunc(claims[:i], func(c v1alpha1.CatalogClaim) bool { return r == claimed(c) }):
		case has(accepted, r) && has(rejected, r):
			fail("rejectClaims", name+" is in acceptClaims, too; list it in one of them")
		case has(accepted, r) && !acceptableClaim(c.Group, c.Resource, c.Verbs):
			fail("acceptClaims", name+" ("+verbsText(c.Verbs)+
				") would give the provider rights that nobody has in a workspace; list it in rejectClaims")
		case !has(accepted, r) && !has(rejected, r):
			fail("acceptClaims", "the provider asks for "+name+" ("+verbsText(c.Verbs)+"); list it in acceptClaims or in rejectClaims")
		}
	}
	if len(causes) == 0 {
		return nil
	}
	slices.SortFunc(causes, func(a, b errs.Cause) int { return strings.Compare(a.Field+a.Message, b.Field+b.Message) })
	return errs.New(errs.Unprocessable, causes[0].Field+": "+causes[0].Message, causes...)
}

func claimed(c v1alpha1.CatalogClaim) v1alpha1.CatalogResource {
	return v1alpha1.CatalogResource{Group: c.Group, Resource: c.Resource}
}
