package records_test

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// mayWait is the number of changes that wait in memory in these tests.
const mayWait = 10

// crowd is a present with many members. It counts how often it was listed, which each comparison does once.
type crowd struct {
	*present
	compared atomic.Int32
}

func newCrowd(members int) *crowd {
	c := &crowd{present: newPresent()}
	c.give(v1alpha1.RoleMember, members)
	return c
}

// give gives so many members a role, and tells those who record it.
func (c *crowd) give(role v1alpha1.Role, members int, told ...*records.Access) {
	for i := range members {
		c.put(memberKey("", fmt.Sprint("u", i)), &tenancy.AccessFact{Role: role}, told...)
	}
}

func (c *crowd) Keys() []tenancy.FactKey {
	c.compared.Add(1)
	return c.present.Keys()
}

// requireCount waits until a statement counts so many rows.
func requireCount(t *testing.T, own *sql.DB, want int, from string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var n int
		return own.QueryRow("SELECT count(*) FROM "+from).Scan(&n) == nil && n == want
	}, 20*time.Second, 10*time.Millisecond, from)
}

const (
	membersOf = "access_intervals WHERE valid_to IS NULL AND kind = 'member' AND role = "
	viewers   = membersOf + "'viewer'"
	members   = membersOf + "'member'"
)

// A first start finds as many differences as there are things.
func TestHistory_storesAComparisonThatIsLargerThanWhatMayWait(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		const many = 1100
		c, db, own := newCrowd(many), open(t, url), raw(t, url)
		a := records.NewBoundedAccess(db, c, mayWait, c.room)
		stop := running(t, a)
		requireCount(t, own, many, members)
		c.give(v1alpha1.RoleViewer, 1, a)
		requireCount(t, own, 1, viewers)
		require.EqualValues(t, 1, c.compared.Load())
		require.NoError(t, a.Err())

		// A later start finds what changed meanwhile, and stores no more.
		stop()
		c.give(v1alpha1.RoleViewer, 2*mayWait)
		again := records.NewBoundedAccess(db, c, mayWait, c.room)
		running(t, again)
		requireCount(t, own, 2*mayWait, viewers)
		requireCount(t, own, 2*mayWait, "access_intervals WHERE valid_to IS NOT NULL")
		require.EqualValues(t, 2, c.compared.Load())
	})
}

func TestHistory_comparesOnceAfterTooManyChangesWaited(t *testing.T) {
	t.Parallel()
	const many = 3 * mayWait
	url := records.DefaultURL(t.TempDir())
	c, db, own := newCrowd(many), open(t, url), raw(t, url)
	a := records.NewBoundedAccess(db, c, mayWait, c.room)
	running(t, a)
	requireCount(t, own, many, members)
	c.fill(errors.New("no room"))
	c.give(v1alpha1.RoleViewer, 1, a)
	require.Eventually(t, func() bool { return a.Err() != nil }, 20*time.Second, time.Millisecond)
	c.give(v1alpha1.RoleViewer, many, a)
	require.EqualValues(t, 1, c.compared.Load(), "nothing is compared while nothing can be stored")
	c.fill(nil)
	requireCount(t, own, many, viewers)
	c.give(v1alpha1.RoleMember, 1, a)
	requireCount(t, own, 1, members)
	require.EqualValues(t, 2, c.compared.Load())
}

// A comparison stores what it found before it has looked at everything. Until then nothing says that the records have
// everything, and changes do not wait for the database.
func TestHistory_isNotSettledDuringAComparison(t *testing.T) {
	t.Parallel()
	const many = 1100
	url := records.DefaultURL(t.TempDir())
	c, db, own := newCrowd(many), open(t, url), raw(t, url)
	partly, wait, asked := make(chan struct{}), make(chan struct{}), atomic.Int32{}
	a := records.NewBoundedAccess(db, c, mayWait, func() error {
		// The first time is the start, and the second one the first batch.
		if asked.Add(1) == 3 {
			close(partly)
			<-wait
		}
		return nil
	})
	running(t, a)
	goOn := sync.OnceFunc(func() { close(wait) })
	t.Cleanup(goOn)
	select {
	case <-partly:
	case <-time.After(20 * time.Second):
		require.Fail(t, "there is no second batch")
	}
	requireCount(t, own, 0, "access_looks")
	require.Zero(t, a.Settled())
	require.Positive(t, a.Lag())
	c.give(v1alpha1.RoleViewer, 2*mayWait, a)
	goOn()
	requireCount(t, own, 2*mayWait, viewers)
	requireCount(t, own, many-2*mayWait, members)
	requireCount(t, own, 1, "access_looks")
	require.EqualValues(t, 1, c.compared.Load(), "what changed during the comparison is stored with it")
	require.Eventually(t, func() bool { return !a.Settled().IsZero() && a.Lag() == 0 }, 20*time.Second, time.Millisecond)
}
