package records

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// AccessAt returns who had access at a moment to a Workspace, or to an Organization and to what is in it where workspace is
// empty.
func (r *Reader) AccessAt(ctx context.Context, org, workspace string, at time.Time) (p tenancy.PastAccess, err error) {
	if org == "" {
		return p, errors.New("a question about access names no organization")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	when := timeText(at)
	var since, asOf sql.Null[moment]
	// What is read afterwards is at least as new.
	looks := r.db.query("SELECT (SELECT min(valid_from) FROM access_looks), (SELECT max(valid_to) FROM access_looks WHERE valid_from <= ?)")
	if err := r.db.reads.QueryRowContext(ctx, looks, when).Scan(&since, &asOf); err != nil {
		return p, unavailable(err)
	}
	p.Since, p.AsOf = time.Time(since.V), time.Time(asOf.V)
	if p.AsOf.IsZero() {
		return p, nil
	}
	if p.AsOf.After(at) {
		p.AsOf = at
	}
	facts, err := r.factsAt(ctx, org, workspace, when)
	if err != nil {
		return p, unavailable(err)
	}
	p.Active, p.Holders = tenancy.HoldersAt(facts, org, workspace, at)
	return p, nil
}

// factsAt reads the facts of an Organization that held at a moment: those of all its Workspaces if workspace is empty, else
// those of one. Memberships of people who could not use the hub are left out.
func (r *Reader) factsAt(ctx context.Context, org, workspace, when string) ([]tenancy.HeldFact, error) {
	var within conditions
	within.add("valid_from <= ?", when)
	within.add("(valid_to IS NULL OR valid_to > ?)", when)
	within.add("org = ?", org)
	if workspace != "" {
		within.add("workspace IN ('', ?)", workspace)
	}
	within.add(`(kind <> 'member' OR EXISTS (SELECT 1 FROM access_intervals u WHERE u.org = '' AND u.kind = 'user' AND u.workspace = ''
		AND u.subject = f.subject AND u.token = '' AND u.valid_from <= ? AND (u.valid_to IS NULL OR u.valid_to > ?)))`, when, when)
	statement := r.db.query("SELECT " + factColumns + " FROM access_intervals f WHERE " + within.text())
	return read(ctx, r.db.reads, statement, within.values, factInto)
}
