package views

import (
	"context"
	"sync"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Await waits until cond holds and returns the context's error where it ends first. It
// asks cond at once, and again after each change that touches one of refs. cond must be
// quick.
func (v *Views) Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error {
	began := time.Now()
	defer func() { v.metrics.wait.Observe(time.Since(began).Seconds()) }()
	if cond() {
		return nil
	}
	touched := v.waiters.add(refs)
	defer v.waiters.remove(touched, refs)
	for {
		if cond() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-touched:
		}
	}
}

// waiters are the callers of Await by what they wait for. Each takes one channel and one
// entry for each of its refs, from add until remove.
type waiters struct {
	mu    sync.Mutex
	byRef map[tenancy.Ref]map[chan struct{}]struct{}
}

// add returns a channel that holds a value when one of refs was touched since the last
// value was received.
func (w *waiters) add(refs []tenancy.Ref) chan struct{} {
	touched := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byRef == nil {
		w.byRef = map[tenancy.Ref]map[chan struct{}]struct{}{}
	}
	for _, ref := range refs {
		put(w.byRef, ref, touched, struct{}{})
	}
	return touched
}

func (w *waiters) remove(touched chan struct{}, refs []tenancy.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range refs {
		remove(w.byRef, ref, touched)
	}
}

// touch wakes those who wait for one of refs. refs is asked only where somebody waits.
func (w *waiters) touch(refs func() []tenancy.Ref) {
	w.mu.Lock()
	idle := len(w.byRef) == 0
	w.mu.Unlock()
	if idle {
		return
	}
	// The views answer refs, so no lock is held meanwhile. A waiter that comes now finds
	// the views changed already.
	all := refs()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range all {
		for touched := range w.byRef[ref] {
			select {
			case touched <- struct{}{}:
			default:
			}
		}
	}
}

func userRefs(_ string, u *v1alpha1.User) []tenancy.Ref {
	return []tenancy.Ref{tenancy.UserRef(u.Name)}
}

func indexRefs(_ string, i *v1alpha1.UserMembershipIndex) []tenancy.Ref {
	return []tenancy.Ref{tenancy.UserRef(i.Name)}
}

func sessionRefs(_ string, s *v1alpha1.Session) []tenancy.Ref {
	return []tenancy.Ref{tenancy.SessionRef(s.Name), tenancy.UserRef(s.Spec.UserRef.Name)}
}

// organizationRefs has the creator, whose quota the Organization counts against.
func (v *Views) organizationRefs(_ string, o *v1alpha1.Organization) []tenancy.Ref {
	return append(v.orgRefs(o.Name), tenancy.UserRef(o.Annotations[v1alpha1.CreatedByAnnotation]))
}

// orgRefs has the Workspaces of the Org: what people may do there follows from it.
func (v *Views) orgRefs(uuid string) []tenancy.Ref {
	refs := []tenancy.Ref{tenancy.OrgRef(uuid)}
	for _, ws := range v.Workspaces(uuid) {
		refs = append(refs, tenancy.WorkspaceRef(ws.UUID))
	}
	return refs
}

func (v *Views) membershipRefs(cluster string, m *v1alpha1.Membership) []tenancy.Ref {
	refs := []tenancy.Ref{tenancy.UserRef(m.Spec.UserRef.Name)}
	if workspace := tenancy.WorkspaceUUID(m); workspace != "" {
		refs = append(refs, tenancy.WorkspaceRef(workspace))
	}
	return append(refs, v.clusterRefs(cluster)...)
}

func (v *Views) workspaceRefs(cluster string, ws *kcptenancyv1alpha1.Workspace) []tenancy.Ref {
	if cluster == v.clusters.Orgs {
		return v.orgRefs(ws.Name)
	}
	return append(v.clusterRefs(cluster), tenancy.WorkspaceRef(ws.Name))
}

// clusterRefs has the Org and the Workspace that a logical cluster belongs to.
func (v *Views) clusterRefs(cluster string) (refs []tenancy.Ref) {
	at := v.Cluster(cluster)
	if at.OrgUUID != "" {
		refs = append(refs, tenancy.OrgRef(at.OrgUUID))
	}
	if at.WorkspaceUUID != "" {
		refs = append(refs, tenancy.WorkspaceRef(at.WorkspaceUUID))
	}
	return refs
}
