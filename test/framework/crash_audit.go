package framework

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// audit collects inconsistencies.
type audit struct {
	*Truth
	found []string
	rows  map[string]map[string]v1alpha1.MembershipIndexEntry
}

func (a *audit) problem(format string, args ...any) {
	a.found = append(a.found, fmt.Sprintf(format, args...))
}

// Problems lists inconsistencies of the state in kcp. Every object is complete, or
// removed with all its dependents. The index and the bindings match the Memberships.
// Every live Org has an admin. A logical cluster is inactive if and only if its Org or
// Workspace is soft-deleted. The rules are written here a second time, independent of the
// reconcilers, so that the audit finds their mistakes.
func (t *Truth) Problems() []string {
	a := &audit{Truth: t, rows: map[string]map[string]v1alpha1.MembershipIndexEntry{}}
	for uuid, org := range t.Orgs {
		a.org(uuid, org)
	}
	for name, u := range t.Users {
		a.user(name, u)
	}
	for name, index := range t.Indexes {
		if t.Users[name] == nil {
			a.problem("the index of %s is left, who is not there", name)
			continue
		}
		a.index(name, index)
	}
	slices.Sort(a.found)
	return a.found
}

func (a *audit) user(name string, u *v1alpha1.User) {
	if a.Indexes[name] == nil {
		a.problem("%s has no index", name)
	}
	if !u.DeletionTimestamp.IsZero() {
		a.problem("%s is still going", name)
		return
	}
	var own []string
	for uuid, org := range a.Orgs {
		if o := org.Organization; o != nil && !o.Spec.Personal && o.Annotations[v1alpha1.CreatedByAnnotation] == name {
			own = append(own, uuid)
		}
	}
	a.claims("the User "+name, u.Spec.OrgClaims, own)
	if u.Status.DeletionRequestedAt != nil {
		return
	}
	if u.Status.Phase != v1alpha1.PhaseReady || u.Status.ObservedGeneration != u.Generation {
		a.problem("%s is %s: %v", name, u.Status.Phase, u.Status.Conditions)
	}
	if a.PersonalOrgs {
		org := a.Orgs[u.Status.PersonalOrg]
		if org == nil || org.Workspaces[u.Status.DefaultWorkspace] == nil {
			a.problem("%s has the own Org %q and the default Workspace %q", name, u.Status.PersonalOrg, u.Status.DefaultWorkspace)
		} else if at := org.Workspaces[u.Status.DefaultWorkspace].Spec.Cluster; u.Spec.DefaultCluster != at {
			a.problem("%s lands in %q, not in %q", name, u.Spec.DefaultCluster, at)
		}
	}
}

// claims compares the claims with the existing objects, and reports a claim that still
// has a request.
func (a *audit) claims(of string, claims []v1alpha1.Claim, existing []string) {
	var claimed []string
	for _, c := range claims {
		claimed = append(claimed, c.UUID)
		if c.Request != nil {
			a.problem("%s has the claim %s that nobody carried out", of, c.UUID)
		}
	}
	slices.Sort(claimed)
	slices.Sort(existing)
	if !slices.Equal(claimed, existing) {
		a.problem("%s claims %v and has %v", of, claimed, existing)
	}
}

func (a *audit) org(uuid string, org *TruthOrg) {
	o := org.Organization
	switch {
	case o == nil:
		a.problem("the kcp Workspace of the Org %s is left", uuid)
		return
	case !o.DeletionTimestamp.IsZero():
		a.problem("the Org %s is still going", uuid)
		return
	case org.Workspace == nil:
		a.problem("the Org %s has no kcp Workspace", uuid)
		return
	case !org.Workspace.DeletionTimestamp.IsZero():
		a.problem("the kcp Workspace of the Org %s is going", uuid)
		return
	}
	if deleted := o.Status.DeletionRequestedAt != nil; deleted != org.Closed {
		a.problem("the Org %s is soft-deleted: %t, and closed: %t", uuid, deleted, org.Closed)
	}
	if org.Closed {
		return
	}
	if o.Status.Phase != v1alpha1.PhaseReady || o.Status.ObservedGeneration != o.Generation {
		a.problem("the Org %s is %s: %v", uuid, o.Status.Phase, o.Status.Conditions)
	}
	a.claims("the Org "+uuid, o.Spec.WorkspaceClaims, slices.Collect(maps.Keys(org.Workspaces)))
	if n := len(o.Spec.MembershipChanges) + len(o.Spec.BotChanges); n > 0 {
		a.problem("the Org %s has %d changes that nobody carried out", uuid, n)
	}
	admins := 0
	for _, m := range org.Memberships {
		a.membership(uuid, org, m)
		if m.Spec.Scope == v1alpha1.ScopeOrg && m.Spec.Role == v1alpha1.RoleAdmin {
			admins++
		}
	}
	if admins == 0 {
		a.problem("the Org %s has no admin", uuid)
	}
	for _, ws := range org.Workspaces {
		a.workspace(uuid, org, ws)
	}
	for name, e := range org.Entries {
		if !e.DeletionTimestamp.IsZero() || e.Status.Phase != v1alpha1.PhaseReady || e.Status.ObservedGeneration != e.Generation {
			a.problem("the entry %s is %s: %v", name, e.Status.Phase, e.Status.Conditions)
		}
	}
}

// grants checks that a Workspace has the right to bind its export for each entry that offers it,
// and no other one. It returns the roles and bindings that remain.
func (a *audit) grants(uuid string, org *TruthOrg, ws *TruthWorkspace) (roles map[string]*rbacv1.ClusterRole, bindings map[string]*rbacv1.ClusterRoleBinding) {
	roles, bindings = maps.Clone(ws.Roles), maps.Clone(ws.Bindings)
	for name, e := range org.Entries {
		if !strings.HasSuffix(e.Spec.APIExport.Path, ":"+uuid+":"+ws.Name) {
			continue
		}
		grant := "kedge:catalog:" + org.Workspace.Spec.Cluster + ":" + name
		if role := roles[grant]; role == nil || len(role.Rules) != 1 || !slices.Equal(role.Rules[0].ResourceNames, []string{e.Spec.APIExport.Name}) {
			a.problem("the role %s of the entry is %v", grant, role)
		}
		if binding := bindings[grant]; binding == nil || len(binding.Subjects) == 0 {
			a.problem("the entry %s is granted to nobody: %v", name, binding)
		}
		delete(roles, grant)
		delete(bindings, grant)
	}
	return roles, bindings
}

func (a *audit) membership(uuid string, org *TruthOrg, m *v1alpha1.Membership) {
	user, in := m.Spec.UserRef.Name, ""
	gives := effective(m)
	row := v1alpha1.MembershipIndexEntry{
		OrgUUID: uuid, OrgDisplayName: org.Organization.Spec.DisplayName,
		Role: gives.Spec.Role, Personal: org.Organization.Spec.Personal,
	}
	if a.Users[user] == nil {
		a.problem("the Membership %s in %s is of nobody", m.Name, uuid)
	}
	if m.Spec.WorkspaceRef != nil {
		in = m.Spec.WorkspaceRef.Name
		ws := org.Workspaces[in]
		if ws == nil {
			a.problem("the Membership %s in %s is in no Workspace", m.Name, uuid)
			return
		}
		w := tenancy.WorkspaceOf(uuid, ws.Workspace)
		row.WorkspaceUUID, row.WorkspaceDisplayName, row.ClusterID, row.SoftDeletedAt = in, w.DisplayName, w.ClusterID, w.DeletionRequestedAt
	}
	if !m.DeletionTimestamp.IsZero() || m.Status.Phase != v1alpha1.PhaseReady || m.Status.ObservedGeneration != m.Generation {
		a.problem("the Membership %s in %s is %s: %v", m.Name, uuid, m.Status.Phase, m.Status.Conditions)
	}
	if a.rows[user] == nil {
		a.rows[user] = map[string]v1alpha1.MembershipIndexEntry{}
	}
	a.rows[user][uuid+"/"+in] = row
}

// index compares the entries with the Memberships. The Memberships in a deactivated Org
// cannot be read; their entries must be marked as soft-deleted.
func (a *audit) index(name string, index *v1alpha1.UserMembershipIndex) {
	want := maps.Clone(a.rows[name])
	for _, have := range index.Spec.Entries {
		key := have.OrgUUID + "/" + have.WorkspaceUUID
		if org := a.Orgs[have.OrgUUID]; org != nil && org.Closed {
			if have.SoftDeletedAt == nil {
				a.problem("the index of %s does not say that %s is soft-deleted", name, key)
			}
			continue
		}
		row, ok := want[key]
		delete(want, key)
		if !ok {
			a.problem("the index of %s has the row %s, and no Membership says so", name, key)
		} else if fmt.Sprint(have.SoftDeletedAt) != fmt.Sprint(row.SoftDeletedAt) || have.Role != row.Role || have.ClusterID != row.ClusterID ||
			have.Personal != row.Personal || have.OrgDisplayName != row.OrgDisplayName || have.WorkspaceDisplayName != row.WorkspaceDisplayName {
			a.problem("the index of %s has %v, where the truth is %v", name, have, row)
		}
	}
	for key := range want {
		a.problem("the index of %s has no row %s", name, key)
	}
}

func (a *audit) workspace(uuid string, org *TruthOrg, ws *TruthWorkspace) {
	w := tenancy.WorkspaceOf(uuid, ws.Workspace)
	if w.Terminating {
		a.problem("the Workspace %s is still going", w.UUID)
		return
	}
	if deleted := w.DeletionRequestedAt != nil; deleted != ws.Closed {
		a.problem("the Workspace %s is soft-deleted: %t, and closed: %t", w.UUID, deleted, ws.Closed)
	}
	if ws.Closed {
		return
	}
	if !w.Ready() {
		a.problem("the Workspace %s is %s: %v", w.UUID, w.Status.Phase, w.Status.Conditions)
	}
	bindings, roles := a.access(w.UUID, org)
	a.bots(w.UUID, org, ws, bindings)
	held, bound := a.grants(uuid, org, ws)
	have := map[string]string{}
	for name, b := range bound {
		have[name] = fmt.Sprintf("%s of %v", b.RoleRef.Name, b.Subjects)
	}
	if !maps.Equal(have, bindings) {
		a.problem("in the Workspace %s is bound %v, where the truth is %v", w.UUID, have, bindings)
	}
	if names := slices.Sorted(maps.Keys(held)); !slices.Equal(names, roles) {
		a.problem("in the Workspace %s are the roles %v, not %v", w.UUID, names, roles)
	}
}

// bots checks the Bots of a Workspace with what they have in it, and adds their expected bindings.
func (a *audit) bots(workspace string, org *TruthOrg, ws *TruthWorkspace, bindings map[string]string) {
	listed := map[string]string{}
	for name, b := range org.Bots {
		if b.Spec.WorkspaceRef.Name != workspace {
			continue
		}
		account := ws.Accounts[name]
		switch {
		case !b.DeletionTimestamp.IsZero():
			a.problem("the bot %s is still going", name)
			continue
		case b.Status.Phase != v1alpha1.PhaseReady || b.Status.ObservedGeneration != b.Generation:
			a.problem("the bot %s is %s: %v", name, b.Status.Phase, b.Status.Conditions)
			continue
		case account == nil || string(account.UID) != b.Status.ServiceAccountUID:
			a.problem("the bot %s does not have its account", name)
		}
		role := "kedge:workspace:" + string(b.Spec.Role)
		bindings[role+":bot:"+name] = fmt.Sprintf("%s of %v", role, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: "default"}})
		for _, t := range b.Spec.Tokens {
			secret := "kedge-bot-token-" + t.ID
			listed[secret] = t.SecretUID
			// A token without a Secret was not given out. The hub removes it after a while.
			if t.SecretUID != "" && ws.Secrets[secret] == nil {
				a.problem("the token %s of the bot %s has no Secret", t.ID, name)
			}
		}
	}
	for name := range ws.Accounts {
		if org.Bots[name] == nil {
			a.problem("the account of the bot %s is left", name)
		}
	}
	for name, secret := range ws.Secrets {
		if uid, ok := listed[name]; !ok || uid != "" && uid != string(secret.UID) {
			a.problem("the token of the Secret %s is in no list", name)
		}
	}
}

// effective is what a Membership gives with all its parts.
func effective(m *v1alpha1.Membership) *v1alpha1.Membership {
	if gives := tenancy.EffectiveAt(m, time.Now()); gives != nil {
		return gives
	}
	return m
}

// access returns the expected bindings of a Workspace, with role and subject, and the
// expected roles of the hub.
func (a *audit) access(workspace string, org *TruthOrg) (bindings map[string]string, roles []string) {
	const prefix = "kedge:workspace:"
	roleOf, sudo := map[string]v1alpha1.Role{}, map[string]bool{}
	for _, m := range org.Memberships {
		m := effective(m)
		u := a.Users[m.Spec.UserRef.Name]
		here := m.Spec.WorkspaceRef != nil && m.Spec.WorkspaceRef.Name == workspace
		if u == nil || u.Status.DeletionRequestedAt != nil || u.Spec.Registration != v1alpha1.RegistrationApproved ||
			!here && (m.Spec.Scope != v1alpha1.ScopeOrg || m.Spec.Role != v1alpha1.RoleAdmin) {
			continue
		}
		if roleOf[u.Name] != v1alpha1.RoleAdmin {
			roleOf[u.Name] = m.Spec.Role
		}
		sudo[u.Name] = sudo[u.Name] || here && m.Spec.Sudo
	}
	bindings = map[string]string{}
	bind := func(name, role, kind, subject string) {
		bindings[name] = fmt.Sprintf("%s of %v", role, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: subject}})
	}
	roles = []string{prefix + "admin", prefix + "member", prefix + "viewer"}
	for name, role := range roleOf {
		identity := a.Users[name].Spec.RBACIdentity
		bind(prefix+string(role)+":user:"+name, prefix+string(role), rbacv1.UserKind, identity)
		if sudo[name] {
			own := prefix + "sudo:user:" + name
			bind(own, own, rbacv1.UserKind, identity)
			bind(prefix+"sudo", prefix+"admin", rbacv1.GroupKind, prefix+workspace+":sudo")
			roles = append(roles, own)
		}
	}
	slices.Sort(roles)
	return bindings, roles
}
