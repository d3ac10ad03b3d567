package apitest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// The names of the objects in a new world.
const (
	Acme    = "11111111-1111-4111-8111-111111111111"
	Globex  = "22222222-2222-4222-8222-222222222222"
	Nowhere = "99999999-9999-4999-8999-999999999999"

	// Dev, Prod and Gone are Workspaces of Acme, Lab is one of Globex. Gone is soft-deleted.
	Dev  = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	Prod = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
	Gone = "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
	Lab  = "dddddddd-dddd-4ddd-8ddd-dddddddddddd"

	// HubCluster is the logical cluster of a workspace of the hub.
	HubCluster = "hubcluster"
	// HubURL is the external URL of the hub.
	HubURL = "https://hub.example.com:9443"
)

// The people in a new world, by metadata.name. The token of each is "token-of-" and the name.
const (
	// Admin is an admin of Acme without a row of any Workspace.
	Admin = "alice"
	// Member is a member of Acme and of no Workspace.
	Member = "bob"
	// WSAdmin and WSMember are members of Dev only, and of no Organization.
	WSAdmin  = "carol"
	WSMember = "walter"
	// Mixed is a member of Acme and an admin of Dev.
	Mixed = "mallory"
	// Foreigner is an admin of Globex.
	Foreigner = "frank"
	// Operator is a platform admin and a member of no Organization.
	Operator = "olga"
	// Auditor is an auditor of the hub, who is not in a new world.
	Auditor = "otto"
)

// Epoch is the creation time of all objects in a new world.
func Epoch() metav1.Time {
	return metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
}

// World replaces the caches. Its objects are replaced, never changed.
type World struct {
	mu         sync.Mutex
	people     map[string]*v1alpha1.User
	orgs       map[string]tenancy.Org
	workspaces map[string]tenancy.Workspace
	index      map[string][]v1alpha1.MembershipIndexEntry
	// members are the Memberships of each Organization, by name.
	members map[string]map[string]*v1alpha1.Membership
	// sessions are all Sessions, by name.
	sessions map[string]*v1alpha1.Session
	later    []func(*World)
	waits    int
	// touched are the refs of the last change of Later.
	touched []tenancy.Ref
	// events are those of the audit log. unaudited is the error of its writes.
	events    []audit.Event
	unaudited error
	// counting are the callers whose streams are counted.
	counting []string
}

// NewWorld returns a world with the objects and people above.
func NewWorld() *World {
	w := &World{
		people:     map[string]*v1alpha1.User{},
		orgs:       map[string]tenancy.Org{},
		workspaces: map[string]tenancy.Workspace{},
		index:      map[string][]v1alpha1.MembershipIndexEntry{},
		members:    map[string]map[string]*v1alpha1.Membership{},
		sessions:   map[string]*v1alpha1.Session{},
	}
	for _, name := range []string{Admin, Member, WSAdmin, WSMember, Mixed, Foreigner, Operator} {
		w.PutUser(Person(name))
	}
	w.PutOrg(Organization(Acme, "Acme", Admin), "acmecluster")
	w.PutOrg(Organization(Globex, "Globex", Foreigner), "globexcluster")
	w.PutWorkspace(Workspace(Acme, Dev, "Development", "devcluster"))
	w.PutWorkspace(Workspace(Acme, Prod, "Production", "prodcluster"))
	gone := Workspace(Acme, Gone, "Gone", "gonecluster")
	deleted := Epoch()
	gone.DeletionRequestedAt = &deleted
	w.PutWorkspace(gone)
	w.PutWorkspace(Workspace(Globex, Lab, "Lab", "labcluster"))
	w.Join(Admin, Acme, "", v1alpha1.RoleAdmin)
	w.Join(Member, Acme, "", v1alpha1.RoleMember)
	w.Join(Mixed, Acme, "", v1alpha1.RoleMember)
	w.Join(Mixed, Acme, Dev, v1alpha1.RoleAdmin)
	w.Join(WSAdmin, Acme, Dev, v1alpha1.RoleAdmin)
	w.Join(WSMember, Acme, Dev, v1alpha1.RoleMember)
	w.Join(Foreigner, Globex, "", v1alpha1.RoleAdmin)
	return w
}

// Person returns a User of that name.
func Person(name string) *v1alpha1.User {
	u := &v1alpha1.User{Spec: v1alpha1.UserSpec{
		DisplayName: "Display of " + name, Email: name + "@example.com",
		Issuer: "static", Subject: name, RBACIdentity: name, Registration: v1alpha1.RegistrationApproved,
	}}
	u.Name, u.Generation, u.CreationTimestamp, u.ResourceVersion = name, 1, Epoch(), FirstVersion
	return u
}

// Organization returns a Ready Organization with the defaults of the schema.
func Organization(uuid, displayName, createdBy string) *v1alpha1.Organization {
	o := tenancy.NewOrganization(uuid, displayName, createdBy)
	o.CreationTimestamp, o.Generation, o.ResourceVersion = Epoch(), 1, FirstVersion
	o.Status.Phase = v1alpha1.PhaseReady
	return o
}

// Workspace returns a Ready Workspace, or one that kcp has not scheduled if cluster is empty.
func Workspace(org, uuid, displayName, cluster string) tenancy.Workspace {
	w := tenancy.Workspace{
		UUID: uuid, OrgUUID: org, DisplayName: displayName, ClusterID: cluster,
		CreatedAt: Epoch(), CreatedBy: Admin, KCPReady: cluster != "", ResourceVersion: FirstVersion,
	}
	w.Status.Phase = v1alpha1.PhaseProgressing
	if w.KCPReady {
		w.Status.Phase = v1alpha1.PhaseReady
	}
	return w
}

// PutUser creates or replaces a User.
func (w *World) PutUser(u *v1alpha1.User) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.people[u.Name] = u
	w.touch(tenancy.UserRef(u.Name))
}

// PutOrg creates or replaces an Organization.
func (w *World) PutOrg(o *v1alpha1.Organization, cluster string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.orgs[o.Name] = tenancy.Org{Organization: o, ClusterID: cluster}
	w.touchOrg(o.Name)
}

// ChangeOrg replaces an Organization by a changed copy.
func (w *World) ChangeOrg(uuid string, change func(*v1alpha1.Organization)) {
	org, _ := w.Org(uuid)
	o := org.DeepCopy()
	change(o)
	w.PutOrg(o, org.ClusterID)
}

// DropOrg removes an Organization.
func (w *World) DropOrg(uuid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.orgs, uuid)
	w.touchOrg(uuid)
}

// PutWorkspace creates or replaces a Workspace.
func (w *World) PutWorkspace(ws tenancy.Workspace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.workspaces[ws.UUID] = ws
	w.touch(tenancy.WorkspaceRef(ws.UUID), tenancy.OrgRef(ws.OrgUUID))
}

// DropWorkspace removes a Workspace.
func (w *World) DropWorkspace(uuid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touch(tenancy.WorkspaceRef(uuid), tenancy.OrgRef(w.workspaces[uuid].OrgUUID))
	delete(w.workspaces, uuid)
}

// Later registers changes that Await makes in order, each while the condition does not hold
// yet.
func (w *World) Later(changes ...func(*World)) { w.later = append(w.later, changes...) }

// StillToCome is the number of changes of Later that Await has not made.
func (w *World) StillToCome() int { return len(w.later) }

// Waits counts the calls of Await.
func (w *World) Waits() int { return w.waits }

// Await makes the changes of Later until cond holds. Like the views, it evaluates cond again
// only after a change that touches one of refs, or that is of no object in the world. After
// all changes it waits for the end of the context.
func (w *World) Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error {
	w.waits++
	for holds := cond(); !holds; {
		if len(w.later) == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		change := w.later[0]
		w.later, w.touched = w.later[1:], nil
		change(w)
		if w.touched == nil || slices.ContainsFunc(w.touched, func(ref tenancy.Ref) bool { return slices.Contains(refs, ref) }) {
			holds = cond()
		}
	}
	return nil
}

// touch records the refs of a change. w.mu is held.
func (w *World) touch(refs ...tenancy.Ref) { w.touched = append(w.touched, refs...) }

// touchOrg records the Organization and its Workspaces. w.mu is held.
func (w *World) touchOrg(uuid string) {
	w.touch(tenancy.OrgRef(uuid))
	for _, ws := range w.workspaces {
		if ws.OrgUUID == uuid {
			w.touch(tenancy.WorkspaceRef(ws.UUID))
		}
	}
}

// ByIdentity finds a User by identity.
func (w *World) ByIdentity(_, subject string) (*v1alpha1.User, bool) { return w.ByName(subject) }

// ByUsername finds a User by username in kcp, which is the name of the User here.
func (w *World) ByUsername(rbacIdentity string) (*v1alpha1.User, bool) { return w.ByName(rbacIdentity) }

// ByName finds a User by name.
func (w *World) ByName(name string) (*v1alpha1.User, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u, ok := w.people[name]
	return u, ok
}

// Index returns the rows of a User's index.
func (w *World) Index(user string) []v1alpha1.MembershipIndexEntry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.index[user]
}

// Org finds an Organization.
func (w *World) Org(uuid string) (tenancy.Org, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.orgs[uuid]
	return o, ok
}

// Workspace finds a Workspace of an Organization.
func (w *World) Workspace(org, workspace string) (tenancy.Workspace, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ws, ok := w.workspaces[workspace]
	return ws, ok && ws.OrgUUID == org
}

// Workspaces returns all Workspaces of an Organization.
func (w *World) Workspaces(org string) []tenancy.Workspace {
	w.mu.Lock()
	defer w.mu.Unlock()
	var in []tenancy.Workspace
	for _, ws := range w.workspaces {
		if ws.OrgUUID == org {
			in = append(in, ws)
		}
	}
	return in
}

// OrgsCreatedBy returns the Organizations that a User created, without the personal one (O-5).
func (w *World) OrgsCreatedBy(user string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var uuids []string
	for uuid, o := range w.orgs {
		if !o.Spec.Personal && o.CreatedBy() == user {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

// SearchPeople finds active Users whose name contains query.
func (w *World) SearchPeople(query string, limit int) []*v1alpha1.User {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*v1alpha1.User
	for _, name := range slices.Sorted(maps.Keys(w.people)) {
		if u := w.people[name]; tenancy.Active(u) && strings.Contains(name, query) && len(found) < limit {
			found = append(found, u)
		}
	}
	return found
}

// People returns all Users.
func (w *World) People() []*v1alpha1.User {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.people))
}

// Cluster returns the place of a logical cluster in the tree.
func (w *World) Cluster(id string) tenancy.Cluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == HubCluster {
		return tenancy.Cluster{ID: id, Kind: tenancy.ClusterHub}
	}
	for uuid, o := range w.orgs {
		if o.ClusterID == id {
			return tenancy.Cluster{ID: id, Kind: tenancy.ClusterOrg, OrgUUID: uuid}
		}
	}
	for uuid, ws := range w.workspaces {
		if ws.ClusterID == id {
			return tenancy.Cluster{ID: id, Kind: tenancy.ClusterWorkspace, OrgUUID: ws.OrgUUID, WorkspaceUUID: uuid}
		}
	}
	return tenancy.Cluster{ID: id}
}

// StreamsCut is the number of streams of every caller that the end of a right cuts.
const StreamsCut = 3

// CountCut implements api.Streams.
func (w *World) CountCut(caller, _ string) (taken func() int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counting = append(w.counting, caller)
	return func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		if i := slices.Index(w.counting, caller); i >= 0 {
			w.counting = slices.Delete(w.counting, i, i+1)
		}
		return StreamsCut
	}
}

// Counting are the callers whose streams are still counted.
func (w *World) Counting() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.counting)
}
