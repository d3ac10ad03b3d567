package usage

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// ofPlatform answers auditors: with one item for each Organization, or with the items of one.
func (h *Handler) ofPlatform(w http.ResponseWriter, r *http.Request) error {
	if h.Records == nil {
		return wire.NoRecords()
	}
	org, err := query.UUID(r, "org", "an organization")
	if err != nil {
		return err
	}
	workspace, err := query.UUID(r, "workspace", "a workspace")
	if err != nil {
		return err
	}
	csv := query.Accepted(r, query.TypeCSV) == query.TypeCSV
	if csv {
		if err := wholeAnswer(r); err != nil {
			return err
		}
	}
	var items []rest.AdminUsageItem
	if org == "" {
		items, err = h.ofOrgs(r, workspace)
	} else {
		items, err = h.ofOne(r, org, workspace)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Vary", "Accept")
	if csv {
		return export(w, usageFile, items, adminColumns(workspace == ""))
	}
	answer := rest.AdminUsageList{List: rest.List[rest.AdminUsageItem]{Items: items}}
	if org == "" {
		if answer.List, err = paging.Page(r, items, keyOf); err != nil {
			return err
		}
	} else if err := paging.SinglePage(r); err != nil {
		return err
	}
	replicas, err := h.Records.UsageFreshness(r.Context())
	if err != nil {
		return err
	}
	answer.Replicas = wire.Replicas(h.Clock.Now(), replicas)
	return httpapi.Write(w, http.StatusOK, answer)
}

// wholeAnswer refuses the parameters of pages.
func wholeAnswer(r *http.Request) error {
	for _, name := range []string{"q", "limit", "continue"} {
		if r.URL.Query().Has(name) {
			return errs.InvalidField("query:"+name, "is for lists in JSON; this answer has all items")
		}
	}
	return nil
}

func keyOf(i rest.AdminUsageItem) (displayName, uuid string) { return i.OrgDisplayName, i.Org }

// ofOrgs returns an item for each Organization that used anything.
func (h *Handler) ofOrgs(r *http.Request, workspace string) ([]rest.AdminUsageItem, error) {
	if workspace != "" {
		return nil, errs.InvalidField("query:org", "must be given with workspace")
	}
	if r.URL.Query().Has("step") {
		return nil, errs.InvalidField("query:step", "needs org: an answer about all organizations adds up the whole time")
	}
	span, err := spanIn(r, h.Clock.Now(), usage.Day)
	if err != nil {
		return nil, err
	}
	found, err := h.Records.UsageOfOrgs(r.Context(), span.From, span.To)
	if err != nil {
		return nil, err
	}
	items := make([]rest.AdminUsageItem, 0, len(found))
	for org, of := range found {
		items = append(items, h.adminItem(*of, org, "", span.To.UTC()))
	}
	slices.SortFunc(items, func(a, b rest.AdminUsageItem) int {
		return cmp.Or(cmp.Compare(a.OrgDisplayName, b.OrgDisplayName), cmp.Compare(a.Org, b.Org))
	})
	return items, nil
}

// ofOne returns the items of an Organization or of a Workspace in it, as its admins see them.
func (h *Handler) ofOne(r *http.Request, org, workspace string) ([]rest.AdminUsageItem, error) {
	span, err := spanOf(r, h.Clock.Now())
	if err != nil {
		return nil, err
	}
	q := usage.OfOrg(org, span)
	if workspace != "" {
		q = usage.OfWorkspace(org, workspace, span)
	}
	found, err := h.Records.Usage(r.Context(), q)
	if err != nil {
		return nil, err
	}
	items := make([]rest.AdminUsageItem, 0, len(found))
	for _, i := range found {
		items = append(items, h.adminItem(i, org, workspace, i.From.Add(span.Step.Duration())))
	}
	return items, nil
}

func (h *Handler) adminItem(i usage.Item, org, workspace string, to time.Time) rest.AdminUsageItem {
	item := rest.AdminUsageItem{UsageItem: viewOf(i, to, workspace == ""), Org: org, Workspace: workspace}
	if o, ok := h.Views.Org(org); ok {
		item.OrgDisplayName = o.Spec.DisplayName
	}
	return item
}
