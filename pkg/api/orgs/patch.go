package orgs

import (
	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// edit is a change of one field.
type edit = func(*v1alpha1.OrganizationSpec)

// editsOf returns the changes that a request makes, with its intent. It reduces rights if every
// change does.
func editsOf(p rest.UpdateOrgRequest) (edits []edit, i httpmw.Intent, err error) {
	const members, admin = string(v1alpha1.WhoMembers), string(v1alpha1.WhoAdmin)
	const none, all = string(v1alpha1.DefaultAccessNone), string(v1alpha1.DefaultAccessView)
	type spec = v1alpha1.OrganizationSpec
	wider, facts := false, &i.Facts
	for _, f := range []struct {
		field string
		raw   []byte
		read  func(raw []byte) (value string, ok bool, err error)
		// narrow is the value that takes rights; empty for a field without one. fact is the value in the audit log, which
		// has the name of the field instead if fact is nil.
		narrow string
		fact   *string
		set    func(*spec, string)
	}{
		{"displayName", p.DisplayName, mergepatch.DisplayName, "", nil, func(o *spec, v string) { o.DisplayName = v }},
		{"description", p.Description, mergepatch.Description, "", nil, func(o *spec, v string) { o.Description = v }},
		{"workspaceCreation", p.WorkspaceCreation, mergepatch.OneOf("workspaceCreation", members, admin),
			admin, &facts.WorkspaceCreation, func(o *spec, v string) { o.WorkspaceCreation = v1alpha1.Who(v) }},
		{"catalogEntryCreation", p.CatalogEntryCreation, mergepatch.OneOf("catalogEntryCreation", members, admin),
			admin, &facts.CatalogEntryCreation, func(o *spec, v string) { o.CatalogEntryCreation = v1alpha1.Who(v) }},
		{"defaultAccess", p.DefaultAccess, mergepatch.OneOf("defaultAccess", none, all),
			none, &facts.DefaultAccess, func(o *spec, v string) { o.DefaultAccess = v1alpha1.DefaultAccess(v) }},
	} {
		value, given, err := f.read(f.raw)
		if err != nil {
			return nil, i, err
		}
		if !given {
			continue
		}
		edits, wider = append(edits, func(o *spec) { f.set(o, value) }), wider || f.narrow == "" || value != f.narrow
		if f.fact != nil {
			*f.fact = value
		} else {
			facts.Fields = append(facts.Fields, f.field)
		}
	}
	billing, err := mergepatch.Billing(p.Billing)
	if err != nil {
		return nil, i, err
	}
	if billing != nil {
		edits, wider = append(edits, func(o *v1alpha1.OrganizationSpec) { o.Billing = billing(o.Billing) }), true
		i.Facts.Fields = append([]string{"billing"}, i.Facts.Fields...)
	}
	i.Reduces = len(edits) > 0 && !wider
	return edits, i, nil
}
