package orgs

import (
	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// edit is a change of one field.
type edit = func(*v1alpha1.OrganizationSpec)

// editsOf returns the changes that a request makes, with its intent. It reduces rights if every
// change does.
func editsOf(p rest.UpdateOrgRequest) (edits []edit, i httpmw.Intent, err error) {
	wider := false
	name, given, err := mergepatch.DisplayName(p.DisplayName)
	if err != nil {
		return nil, i, err
	}
	if given {
		edits, wider = append(edits, func(o *v1alpha1.OrganizationSpec) { o.DisplayName = name }), true
		i.Facts.Fields = append(i.Facts.Fields, "displayName")
	}
	description, err := mergepatch.Description(p.Description)
	if err != nil {
		return nil, i, err
	}
	if description != nil {
		edits, wider = append(edits, func(o *v1alpha1.OrganizationSpec) { o.Description = *description }), true
		i.Facts.Fields = append(i.Facts.Fields, "description")
	}
	const members, admin = string(v1alpha1.WhoMembers), string(v1alpha1.WhoAdmin)
	const none, all = string(v1alpha1.DefaultAccessNone), string(v1alpha1.DefaultAccessView)
	facts := &i.Facts
	type spec = v1alpha1.OrganizationSpec
	for _, choice := range []struct {
		field                 string
		raw                   []byte
		first, second, narrow string
		fact                  *string
		set                   func(*spec, string)
	}{
		{"workspaceCreation", p.WorkspaceCreation, members, admin, admin, &facts.WorkspaceCreation,
			func(o *spec, v string) { o.WorkspaceCreation = v1alpha1.Who(v) }},
		{"catalogEntryCreation", p.CatalogEntryCreation, members, admin, admin, &facts.CatalogEntryCreation,
			func(o *spec, v string) { o.CatalogEntryCreation = v1alpha1.Who(v) }},
		{"defaultAccess", p.DefaultAccess, none, all, none, &facts.DefaultAccess,
			func(o *spec, v string) { o.DefaultAccess = v1alpha1.DefaultAccess(v) }},
	} {
		value, given, err := mergepatch.Text(choice.field, choice.raw)
		switch {
		case err != nil:
			return nil, i, err
		case !given:
			continue
		case value != choice.first && value != choice.second:
			return nil, i, errs.InvalidField(choice.field, "must be "+choice.first+" or "+choice.second)
		}
		edits, wider = append(edits, func(o *v1alpha1.OrganizationSpec) { choice.set(o, value) }), wider || value != choice.narrow
		*choice.fact = value
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
