package records_test

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/usage"
	"github.com/faroshq/kedge-hub/test/readme"
)

// billedHour is a line of billing_hours.
type billedHour struct {
	hour                                           string
	org, orgName, workspace, name, path, center    string
	labels, phase                                  string
	objects, bytes, requests, writes, people, bots int64
}

// month is a simulated month with what must be billed for it.
type month struct {
	from, to time.Time
	// want are its lines, ordered by hour and Workspace.
	want []billedHour
	// billing and process record it.
	billing *records.Billing
	process *process
	clock   *clocktesting.FakeClock
}

// state is what a Workspace was from a time on; without a phase it was purged.
type state struct {
	from time.Time
	records.BilledWorkspace
}

// simulateMonth has the hub record a month of random creates, changes, deletions and purges, and random requests. It
// began 40 days ago.
func simulateMonth(t *testing.T, db *records.DB) month {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	m := month{from: time.Now().UTC().Truncate(24 * time.Hour).Add(-40 * 24 * time.Hour)}
	m.to = m.from.Add(30 * 24 * time.Hour)
	k, w := clocktesting.NewFakeClock(m.from), &workspaces{held: map[string]records.BilledWorkspace{}}
	m.clock = k
	m.billing, _ = recordingAt(t, db, w, k)
	require.Eventually(t, m.billing.Reads, 20*time.Second, 10*time.Millisecond)
	m.process = newProcess(t, db, k, "ONE", 0)
	m.process.write(t)
	history, used := map[string][]state{}, map[string]*billedHour{}
	callers := map[string]map[usage.Caller]bool{}
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	for now := m.from; ; {
		now = now.Add(time.Duration(1+random.IntN(4*3600)) * time.Second)
		if random.IntN(5) == 0 {
			// A change on the hour belongs to the hour that begins.
			now = now.Truncate(time.Hour).Add(time.Hour)
		}
		if !now.Before(m.to) {
			break
		}
		k.SetTime(now)
		// What is counted from now on belongs to the interval of now.
		require.NoError(t, m.process.Write(t.Context()))
		var held records.BilledWorkspace
		if alive := slices.Sorted(maps.Keys(w.held)); len(alive) > 0 {
			held = w.held[pick(alive...)]
		}
		switch what := random.IntN(10); {
		case held.Workspace == "", what < 2 && len(w.held) < 12:
			held = records.BilledWorkspace{
				Workspace: fmt.Sprintf("w%03d", len(history)), Name: "Web", Org: pick("acme", "umbrella"), CostCenter: pick("", "1"), Labels: "{}", Phase: "Active",
			}
			held.OrgName, held.Path = strings.ToUpper(held.Org), "root:"+held.Workspace
		case what < 4:
			held.CostCenter, held.Labels = pick("1", "2", "3"), pick("{}", `{"team":"web"}`)
		case what < 5:
			held.Name = pick("Web", "Shop", "Büro")
		case what < 6:
			held.Phase = pick("Active", "Deleted")
		case what < 7 && held.Phase == "Deleted":
			held.Phase = ""
		}
		history[held.Workspace] = append(history[held.Workspace], state{now, held})
		w.change(held, m.billing)
		// It was there until now, or is from now on: what it uses in this moment is billed if it is not purged.
		if held.Phase == "" {
			continue
		}
		key := hourText(now) + held.Workspace
		if used[key] == nil {
			used[key], callers[key] = &billedHour{}, map[usage.Caller]bool{}
		}
		of, u := usage.Workspace{Org: held.Org, UUID: held.Workspace}, used[key]
		for range random.IntN(4) {
			by := []usage.Caller{alice, bob, robot}[random.IntN(3)]
			class := []usage.Class{usage.Read, usage.Write, usage.Watch}[random.IntN(3)]
			m.process.serve(of, by, class, 10)
			if u.requests++; class == usage.Write {
				u.writes++
			}
			if !callers[key][by] {
				callers[key][by] = true
				if by.Bot {
					u.bots++
				} else {
					u.people++
				}
			}
		}
		if stored := random.Int64N(1 << 30); stored%3 > 0 {
			m.process.store(of, stored%1000, stored)
			u.objects, u.bytes = max(u.objects, stored%1000), max(u.bytes, stored)
		}
		require.NoError(t, m.process.Write(t.Context()))
	}
	for hour := m.from; hour.Before(m.to); hour = hour.Add(time.Hour) {
		for _, uuid := range slices.Sorted(maps.Keys(history)) {
			held, ok := inHour(history[uuid], hour)
			if !ok {
				continue
			}
			line := billedHour{}
			if u := used[hourText(hour)+uuid]; u != nil {
				line = *u
			}
			line.hour, line.org, line.orgName, line.workspace, line.name = hourText(hour), held.Org, held.OrgName, uuid, held.Name
			line.path, line.center, line.labels, line.phase = held.Path, held.CostCenter, held.Labels, held.Phase
			m.want = append(m.want, line)
		}
	}
	return m
}

// inHour returns what a Workspace was last in an hour.
func inHour(history []state, hour time.Time) (last state, ok bool) {
	for _, s := range history {
		if !s.from.Before(hour.Add(time.Hour)) {
			break
		}
		if s.Phase != "" {
			last, ok = s, true
		} else if !s.from.After(hour) {
			ok = false
		}
	}
	return last, ok
}

func hourText(t time.Time) string { return t.UTC().Truncate(time.Hour).Format(time.RFC3339) }

// timeOf is a time as a driver reads it.
func timeOf(value any) (time.Time, error) {
	switch v := value.(type) {
	case time.Time:
		return v, nil
	case string:
		return time.Parse(time.RFC3339Nano, v)
	}
	return time.Time{}, fmt.Errorf("%T is no time", value)
}

// billedHours returns the lines that a query selects, ordered by hour and Workspace.
func billedHours(own *sql.DB, query string) (all []billedHour, err error) {
	found, err := own.Query(query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var l billedHour
		var hour any
		if err := found.Scan(&hour, &l.org, &l.orgName, &l.workspace, &l.name, &l.path, &l.center, &l.labels, &l.phase,
			&l.objects, &l.bytes, &l.requests, &l.writes, &l.people, &l.bots); err != nil {
			return nil, err
		}
		at, err := timeOf(hour)
		if err != nil {
			return nil, err
		}
		l.hour, l.labels = hourText(at), strings.ReplaceAll(l.labels, " ", "")
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b billedHour) int {
		return cmp.Or(cmp.Compare(a.hour, b.hour), cmp.Compare(a.workspace, b.workspace))
	})
	return all, found.Err()
}

const billedColumns = `org_uuid, org_name, workspace_uuid, workspace_name, path, cost_center, CAST(labels AS text), phase,
	objects, bytes, requests, writes, people, bots`

// within is a condition on a column with times.
func (m month) within(column string) string {
	const form = "2006-01-02 15:04Z"
	return " WHERE " + column + " >= '" + m.from.Format(form) + "' AND " + column + " < '" + m.to.Format(form) + "'"
}

// require waits until a query selects what must be billed.
func (m month) require(t *testing.T, own *sql.DB, query string) {
	t.Helper()
	require.NotEmpty(t, m.want)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		found, err := billedHours(own, query)
		assert.NoError(c, err)
		// The first difference says more than all of them.
		for i := range min(len(found), len(m.want)) {
			if found[i] != m.want[i] {
				assert.Equal(c, m.want[i], found[i])
				return
			}
		}
		assert.Len(c, found, len(m.want))
	}, time.Minute, 200*time.Millisecond)
}

// Every Workspace has one line for every hour in which there was one, with what it was last, and the bill of the guide is
// the sum of these lines.
func TestBillingHours_ofAMonthAddUpExactly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		m, own := simulateMonth(t, open(t, url)), raw(t, url)
		m.require(t, own, "SELECT hour, "+billedColumns+" FROM billing_hours"+m.within("hour"))

		type line struct {
			org, center     string
			hours, requests int64
			gib, price      float64
		}
		want := map[string]*line{}
		for _, h := range m.want {
			key := h.orgName + "/" + h.center
			if want[key] == nil {
				want[key] = &line{org: h.orgName, center: h.center}
			}
			want[key].hours++
			want[key].requests += h.requests
			want[key].gib += float64(h.bytes) / (1 << 30)
		}
		query := strings.NewReplacer("2026-03-01", m.from.Format(time.DateOnly), "2026-04-01", m.to.Format(time.DateOnly)).
			Replace(readme.BlockOf(t, "deploy/README.md", "bill of a month"))
		found, err := own.Query(query)
		require.NoError(t, err)
		defer func() { require.NoError(t, found.Close()) }()
		for found.Next() {
			var l line
			require.NoError(t, found.Scan(&l.org, &l.center, &l.hours, &l.gib, &l.requests, &l.price))
			w := want[l.org+"/"+l.center]
			require.NotNil(t, w, "%+v", l)
			delete(want, l.org+"/"+l.center)
			require.Equal(t, []int64{w.hours, w.requests}, []int64{l.hours, l.requests})
			require.InDelta(t, w.gib, l.gib, 0.001)
			require.InDelta(t, float64(w.hours)*0.05+w.gib*0.002+float64(w.requests)*0.0001, l.price, 0.01)
		}
		require.NoError(t, found.Err())
		require.Empty(t, want)
	})
}

// A Workspace of the present has a line for the hour that runs.
func TestBillingHours_haveTheHourThatRuns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		w := &workspaces{held: map[string]records.BilledWorkspace{}}
		w.put("w1", "1", "Active")
		began := time.Now()
		recording(t, open(t, url), w)
		own := raw(t, url)
		requireRows(t, own, "w1", "1 Active")
		found, err := billedHours(own, "SELECT hour, "+billedColumns+" FROM billing_hours")
		require.NoError(t, err)
		require.NotEmpty(t, found)
		require.Equal(t, hourText(began), found[0].hour)
		require.Equal(t, "1", found[0].center)
	})
}
