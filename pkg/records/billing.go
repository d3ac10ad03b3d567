package records

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// BilledWorkspace is what a bill for a Workspace depends on. Labels are a JSON object.
type BilledWorkspace struct {
	Workspace, Name, Org, OrgName, Path, CostCenter, Labels, Phase string
}

// storable returns the Workspace without NUL, which no database takes.
func (w BilledWorkspace) storable() BilledWorkspace {
	for _, text := range []*string{&w.Name, &w.OrgName, &w.CostCenter} {
		*text = strings.ReplaceAll(*text, "\x00", "")
	}
	w.Labels = withoutNUL(w.Labels)
	return w
}

// Place names a Workspace of an Organization. Without the Organization it is a Workspace that is known.
type Place struct{ Org, Workspace string }

// Present has the Workspaces that there are.
type Present interface {
	Billed(Place) (BilledWorkspace, bool)
	Places() []Place
}

// Billing keeps what bills depend on in the table billing_workspaces: a row for each Workspace and each time during
// which it was the same. It runs on the leader.
type Billing struct {
	history[string, BilledWorkspace]
	present Present
}

// NewBilling returns a Billing and registers its metric. While room returns an error, changes wait in memory.
func NewBilling(db *DB, present Present, k clock.PassiveClock, room func() error, registry prometheus.Registerer) (*Billing, error) {
	b := &Billing{present: present}
	b.history = newHistory(db, k, room, historyTable[string, BilledWorkspace]{
		name: "billing", rows: "billing_workspaces", open: b.open, things: b.things, store: b.store,
	})
	return b, registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kedge_billing_changes_lag_seconds",
		Help: "Age in seconds of the oldest change of a billed workspace that --database does not have; 0 if it has all, and on a replica that does not lead.",
	}, func() float64 { return b.Lag().Seconds() }))
}

// Changed records Workspaces as they are now, if that differs from what is known of them.
func (b *Billing) Changed(places ...Place) {
	things := make([]thing[string, BilledWorkspace], 0, len(places))
	for _, p := range places {
		things = append(things, b.thing(p))
	}
	b.changed(things...)
}

func (b *Billing) thing(p Place) thing[string, BilledWorkspace] {
	return thing[string, BilledWorkspace]{p.Workspace, func(held BilledWorkspace) (BilledWorkspace, bool) {
		// The cache of the Organization may be ahead of that of its Workspaces.
		now, is := b.present.Billed(Place{cmp.Or(p.Org, held.Org), p.Workspace})
		return now.storable(), is
	}}
}

// things are the Workspaces of the rows and those that there are.
func (b *Billing) things(rows map[string]row[BilledWorkspace]) (all []thing[string, BilledWorkspace]) {
	for uuid, w := range rows {
		all = append(all, b.thing(Place{w.value.Org, uuid}))
	}
	for _, p := range b.present.Places() {
		all = append(all, b.thing(p))
	}
	return all
}

// open reads the rows without an end, and the time of the last change of all.
func (b *Billing) open(ctx context.Context) (known map[string]row[BilledWorkspace], last time.Time, err error) {
	last, err = b.db.lastChange(ctx,
		"SELECT max(at) FROM (SELECT max(valid_from) AS at FROM billing_workspaces UNION ALL SELECT max(valid_to) FROM billing_workspaces) t")
	if err != nil {
		return nil, last, err
	}
	held, err := read(ctx, b.db.writes,
		"SELECT workspace, name, org, org_name, path, cost_center, labels, phase FROM billing_workspaces WHERE valid_to IS NULL",
		nil, func(w *BilledWorkspace) []any {
			return []any{&w.Workspace, &w.Name, &w.Org, &w.OrgName, &w.Path, &w.CostCenter, &w.Labels, &w.Phase}
		})
	if err != nil {
		return nil, last, err
	}
	known = map[string]row[BilledWorkspace]{}
	for _, w := range held {
		known[w.Workspace] = row[BilledWorkspace]{value: w}
	}
	return known, last, nil
}

// store writes a change. It neither ends nor precedes what began after it.
func (b *Billing) store(ctx context.Context, tx *sql.Tx, c change[string, BilledWorkspace]) error {
	ends := b.db.query("UPDATE billing_workspaces SET valid_to = ? WHERE workspace = ? AND valid_to IS NULL AND valid_from < ?")
	if _, err := tx.ExecContext(ctx, ends, c.ends, c.key, c.ends); err != nil || c.gone {
		return err
	}
	w := c.value
	begins := b.db.query(`INSERT INTO billing_workspaces
		(id, workspace, name, org, org_name, path, cost_center, labels, phase, valid_from) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
		WHERE NOT EXISTS (SELECT 1 FROM billing_workspaces WHERE workspace = ? AND valid_from >= ?)`)
	_, err := tx.ExecContext(ctx, begins, c.id, c.key, w.Name, w.Org, w.OrgName, w.Path, w.CostCenter, w.Labels, w.Phase, c.begins, c.key, c.begins)
	return err
}
