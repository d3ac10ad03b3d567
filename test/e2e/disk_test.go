package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/disktest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// diskSize is enough for a hub that has just started, with room above its thresholds.
const diskSize = "512m"

// Another program fills the disk during creates. The hub keeps running, answers reads, refuses growth
// and changes with the reason, carries out every ending, can be backed up to another disk, and continues when there is
// room. Nothing acknowledged is lost.
func TestFullDisk_carriesOutEndingsAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := disktest.Mount(t, diskSize)
	h := startHub(t, dir, freePort(t), "--default-org-quota", "10000")
	tenant := newTenant(t, h)
	people := framework.People()
	newcomer, creators := people[len(people)-1], people[:3]

	c := startCreating(h, creators)
	defer c.end()
	framework.Eventually(t, framework.Long, func() error { return c.enough(&c.acknowledged, int64(3*len(creators))) })
	fill := disktest.Fill(t, dir)
	framework.Eventually(t, framework.Long, func() error { return c.enough(&c.refused, int64(5*len(creators))) })

	tenant.refuses(t, "is used, and only what takes rights or space away is written", tenant.growth(newcomer), tenant.changes())
	tenant.reads(t)
	h.backsUpElsewhere(t)
	h.floor(t, "[-]disk not ready: ", "only what takes rights or space away is written")
	tenant.ends(t)

	require.NoError(t, os.Remove(fill))
	had := c.acknowledged.Load()
	framework.Eventually(t, framework.Long, func() error { return c.enough(&c.acknowledged, had+int64(len(creators))) })
	c.end()
	require.Empty(t, c.others, "acknowledged, or refused for the moment")
	h.Do(t, framework.Call{As: newcomer, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	h.floor(t, "[+]disk ok", "")
	t.Logf("%d creates acknowledged, %d of them before there was room again; %d refused", len(c.orgs), had, c.refused.Load())
	framework.Eventually(t, framework.Long, func() error {
		for uuid, person := range c.orgs {
			if err := ready(h, framework.Call{As: person, Path: "/api/orgs/" + uuid, Org: uuid}); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, h.Stop(), "the process that was started is the one that ends")
}

// createEvery is the interval at which kcp can still keep up.
const createEvery = 500 * time.Millisecond

// creating are people who create Organizations one after the other without waiting.
type creating struct {
	acknowledged, refused atomic.Int64
	over                  atomic.Bool
	running               sync.WaitGroup

	mu sync.Mutex
	// orgs are the acknowledged Organizations with their creators; others are the other
	// answers.
	orgs   map[string]string
	others []string
}

func startCreating(h *hub, people []string) *creating {
	c := &creating{orgs: map[string]string{}}
	for _, person := range people {
		c.running.Go(func() {
			ticker := time.NewTicker(createEvery)
			defer ticker.Stop()
			for n := 0; !c.over.Load(); n++ {
				a, err := h.Try(framework.Call{
					As: person, Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": fmt.Sprint(person, n)},
					Header: http.Header{"Prefer": {"respond-async"}},
				})
				c.answered(person, a, err)
				if err != nil {
					return
				}
				<-ticker.C
			}
		})
	}
	return c
}

func (c *creating) answered(person string, a framework.Answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.others = append(c.others, err.Error())
	case a.Code == http.StatusCreated || a.Code == http.StatusAccepted:
		c.orgs[a.Text("uuid")] = person
		c.acknowledged.Add(1)
	case a.Code == http.StatusInsufficientStorage && strings.Contains(a.Text("message"), "of the hub's disk is used"):
		c.refused.Add(1)
	case a.Code == http.StatusServiceUnavailable && strings.Contains(a.Text("message"), "audit log of the hub cannot be written"):
		// The disk was full a moment before the hub measured it. Such a create changed nothing.
	default:
		c.others = append(c.others, fmt.Sprintf("%s: %d %s", person, a.Code, a.Raw))
	}
}

// enough returns nil when there were n answers.
func (c *creating) enough(answers *atomic.Int64, want int64) error {
	if have := answers.Load(); have < want {
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("%d answers of %d; others: %q", have, want, c.others)
	}
	return nil
}

// end waits for the creates in progress.
func (c *creating) end() {
	c.over.Store(true)
	c.running.Wait()
}
