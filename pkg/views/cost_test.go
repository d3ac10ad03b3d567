package views_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/views"
)

var (
	firstPerson, firstOrg       = personName(0), orgUUID(0)
	firstWorkspace, firstOrgsID = workspaceUUID(0), orgCluster(0)
)

// reads are the reads of requests, each with its maximum number of allocations, whatever
// the size of the views.
var reads = []struct {
	name string
	most float64
	ask  func(v *views.Views)
}{
	{"Index", 0, func(v *views.Views) { v.Index(firstPerson) }},
	{"ByName", 0, func(v *views.Views) { v.ByName(firstPerson) }},
	{"ByIdentity", 0, func(v *views.Views) { v.ByIdentity("https://issuer.example.com", firstPerson) }},
	{"Org", 0, func(v *views.Views) { v.Org(firstOrg) }},
	{"OrgByCluster", 0, func(v *views.Views) { v.OrgByCluster(firstOrgsID) }},
	{"Workspace", 0, func(v *views.Views) { v.Workspace(firstOrg, firstWorkspace) }},
	{"Cluster", 0, func(v *views.Views) { v.Cluster(firstOrgsID) }},
	{"UsedWorkspaces", 0, func(v *views.Views) { v.UsedWorkspaces(firstOrg, nil) }},
	{"Sudo", 1, func(v *views.Views) { v.Sudo(firstPerson, firstOrg, firstWorkspace) }},
	// Each returned Membership is decoded.
	{"MembershipsOf", 7, func(v *views.Views) { v.MembershipsOf(firstPerson) }},
	{"Workspaces", 1, func(v *views.Views) { v.Workspaces(firstOrg) }},
	{"SearchPeople, most found", 1, func(v *views.Views) { v.SearchPeople("person", 20) }},
	{"SearchPeople, none found", 1, func(v *views.Views) { v.SearchPeople("nobody", 20) }},
}

// Not parallel, because it counts the allocations of the whole program.
func TestViews_readsAllocateOnlyTheirAnswers(t *testing.T) {
	for _, people := range []int{10, 2000} {
		v := watching(t, world{orgs: people, people: people, rows: 1}.objects(), nil)
		for _, read := range reads {
			// The watches may allocate at the same time, which can only add to the count.
			least := math.Inf(1)
			for range 10 {
				least = min(least, testing.AllocsPerRun(100, func() { read.ask(v) }))
			}
			require.LessOrEqual(t, least, read.most, "%s of %d", read.name, people)
		}
	}
}

func BenchmarkReads(b *testing.B) {
	for _, people := range []int{10, 10_000} {
		v := watching(b, world{orgs: people, people: people, rows: 1}.objects(), nil)
		for _, read := range reads {
			b.Run(fmt.Sprintf("%s/%d people", read.name, people), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					read.ask(v)
				}
			})
		}
	}
}

// BenchmarkPerson reports the memory of one person.
func BenchmarkPerson(b *testing.B) {
	for _, rows := range []int{1, 5} {
		b.Run(fmt.Sprintf("%d memberships", rows), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(bytesPerPerson(b, 10_000, rows)), "B/person")
			}
		})
	}
}

func TestViews_personTakesAtMostFourKiB(t *testing.T) {
	t.Parallel()
	if !views.Alone(t) {
		return
	}
	per := bytesPerPerson(t, 2000, 5)
	t.Log(per, "bytes")
	require.LessOrEqual(t, per, int64(4<<10))
	require.Greater(t, per, int64(2<<10), "the control: it is measured")
}

// bytesPerPerson returns the memory of one person, in the views and in the informers,
// after every person has sent a request.
func bytesPerPerson(t testing.TB, people, rows int) int64 {
	objects := world{orgs: people, people: people, rows: rows}.objects()
	var before int64
	v := watching(t, objects, func() { before = views.LiveHeap() })
	for i := range people {
		v.Index(personName(i))
	}
	per := (views.LiveHeap() - before) / int64(people)
	runtime.KeepAlive(v)
	runtime.KeepAlive(objects)
	return per
}
