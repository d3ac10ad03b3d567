package usage

import (
	"encoding/json"
	"net/http"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// maxBilled is the number of items of an answer in CSV.
const maxBilled = 100_000

// billed answers auditors with what bills for Workspaces depended on.
func (h *Handler) billed(w http.ResponseWriter, r *http.Request) error {
	if h.Records == nil {
		return wire.NoRecords()
	}
	q, err := billingQuery(r)
	if err != nil {
		return err
	}
	w.Header().Set("Vary", "Accept")
	if query.Accepted(r, query.TypeCSV) == query.TypeCSV {
		if err := wholeAnswer(r); err != nil {
			return err
		}
		items, err := h.allBilled(r, q)
		if err != nil {
			return err
		}
		return export(w, "billing.csv", items, billingColumns())
	}
	if q.Limit, err = paging.Limit(r); err != nil {
		return err
	}
	if q.After, err = billedAfter(r); err != nil {
		return err
	}
	found, next, err := h.Records.Billed(r.Context(), q)
	if err != nil {
		return err
	}
	answer := rest.List[rest.BilledWorkspace]{Items: make([]rest.BilledWorkspace, 0, len(found))}
	for _, b := range found {
		answer.Items = append(answer.Items, billedView(b))
	}
	if next != nil {
		answer.Continue = paging.Token(r, next.From.UTC().Format(time.RFC3339Nano), next.ID)
	}
	return httpapi.Write(w, http.StatusOK, answer)
}

// allBilled reads all pages.
func (h *Handler) allBilled(r *http.Request, q usage.BillingQuery) (items []rest.BilledWorkspace, err error) {
	q.Limit = maxItems
	for {
		found, next, err := h.Records.Billed(r.Context(), q)
		if err != nil {
			return nil, err
		}
		for _, b := range found {
			items = append(items, billedView(b))
		}
		switch {
		case next == nil:
			return items, nil
		case len(items) >= maxBilled:
			return nil, errs.InvalidField("query:from", "must be later: the answer would have too many items; ask for a shorter time or one organization")
		}
		q.After = next
	}
}

func billingQuery(r *http.Request) (q usage.BillingQuery, err error) {
	if q.Org, err = query.UUID(r, "org", "an organization"); err != nil {
		return q, err
	}
	if q.Workspace, err = query.UUID(r, "workspace", "a workspace"); err != nil {
		return q, err
	}
	if q.CostCenter, err = query.Text(r, "costCenter"); err != nil {
		return q, err
	}
	q.From, q.To, err = query.Between(r, "from", "to")
	return q, err
}

// billedAfter returns the position in ?continue=. It is nil for the first page.
func billedAfter(r *http.Request) (*usage.BillingPosition, error) {
	text, id, given, err := paging.After(r)
	if err != nil || !given {
		return nil, err
	}
	from, err := time.Parse(time.RFC3339Nano, text)
	if year := from.Year(); err != nil || year < 1970 || year > 9999 {
		return nil, errs.InvalidField("query:continue", "is not one that this list returned; begin again without it")
	}
	return &usage.BillingPosition{From: from, ID: id}, nil
}

func billedView(b usage.Billed) rest.BilledWorkspace {
	view := rest.BilledWorkspace{
		Org: b.Org, OrgDisplayName: b.OrgName, Workspace: b.Workspace, WorkspaceDisplayName: b.Name, WorkspacePath: b.Path,
		CostCenter: b.CostCenter, Phase: b.Phase, From: b.From,
	}
	// The hub has written it.
	_ = json.Unmarshal([]byte(b.Labels), &view.Labels)
	if !b.To.IsZero() {
		view.To = &b.To
	}
	return view
}

// billingColumns are those of CSV. The labels are JSON in one cell.
func billingColumns() []query.Column[rest.BilledWorkspace] {
	return []query.Column[rest.BilledWorkspace]{
		{Name: "org", Value: func(b rest.BilledWorkspace) string { return b.Org }},
		{Name: "orgDisplayName", Value: func(b rest.BilledWorkspace) string { return b.OrgDisplayName }},
		{Name: "workspace", Value: func(b rest.BilledWorkspace) string { return b.Workspace }},
		{Name: "workspaceDisplayName", Value: func(b rest.BilledWorkspace) string { return b.WorkspaceDisplayName }},
		{Name: "workspacePath", Value: func(b rest.BilledWorkspace) string { return b.WorkspacePath }},
		{Name: "costCenter", Value: func(b rest.BilledWorkspace) string { return b.CostCenter }},
		{Name: "labels", Value: func(b rest.BilledWorkspace) string {
			if len(b.Labels) == 0 {
				return ""
			}
			raw, _ := json.Marshal(b.Labels)
			return string(raw)
		}},
		{Name: "phase", Value: func(b rest.BilledWorkspace) string { return b.Phase }},
		{Name: "from", Value: func(b rest.BilledWorkspace) string { return b.From.UTC().Format(time.RFC3339Nano) }},
		{Name: "to", Value: func(b rest.BilledWorkspace) string {
			if b.To == nil {
				return ""
			}
			return b.To.UTC().Format(time.RFC3339Nano)
		}},
	}
}
