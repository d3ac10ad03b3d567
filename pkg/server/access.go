package server

import (
	"encoding/json"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// access returns what records, on the leader, who has access. It is nil without a database.
func (a *assembly) access() *records.Access {
	if a.hub.records == nil {
		return nil
	}
	v, c := a.views, a.hub.config
	facts := accessFacts{views: v, issuers: c.CI.Issuers}
	r := records.NewAccess(a.hub.records, facts, c.Clock, c.Records.AuditRetention, a.hub.roomForRecords)
	a.hub.checks.AddDetail("access", r.Err)
	v.Users.OnChange(func(u views.Change[*v1alpha1.User]) { r.Changed(userFact(u.Object().Name)) })
	v.Memberships.OnChange(func(m views.Change[*v1alpha1.Membership]) {
		if org, ok := v.OrgByCluster(m.Cluster()); ok {
			r.Changed(memberFact(org.UUID(), m.Object()))
		}
	})
	v.Bots.OnChange(func(b views.Change[*v1alpha1.Bot]) {
		org, ok := v.OrgByCluster(b.Cluster())
		if !ok {
			return
		}
		r.Changed(append(botFacts(org.UUID(), b.Old), botFacts(org.UUID(), b.New)...)...)
	})
	v.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		if org, ok := v.OrgByCluster(ws.Cluster()); ok {
			r.Changed(tenancy.FactKey{Kind: tenancy.FactWorkspace, Org: org.UUID(), Workspace: ws.Object().Name})
		}
	})
	of := func(o *v1alpha1.Organization) any {
		return []any{o.Spec.DisplayName, o.Spec.DefaultAccess, o.Status.DeletionRequestedAt}
	}
	v.Organizations.Follow(of, func(o views.Change[*v1alpha1.Organization]) {
		if o.Removed() {
			r.OrgChanged(o.Object().Name)
		}
		r.Changed(facts.in(o.Object().Name)...)
	})
	// What is in an Organization is found once its logical cluster is known.
	cluster := func(ws *kcptenancyv1alpha1.Workspace) any { return ws.Spec.Cluster }
	v.OrgWorkspaces.Follow(cluster, func(ws views.Change[*kcptenancyv1alpha1.Workspace]) { r.Changed(facts.in(ws.Object().Name)...) })
	return r
}

func userFact(name string) tenancy.FactKey {
	return tenancy.FactKey{Kind: tenancy.FactUser, Subject: name}
}

func orgFact(org string) tenancy.FactKey { return tenancy.FactKey{Kind: tenancy.FactOrg, Org: org} }

func memberFact(org string, m *v1alpha1.Membership) tenancy.FactKey {
	return tenancy.FactKey{Kind: tenancy.FactMember, Org: org, Workspace: tenancy.WorkspaceUUID(m), Subject: m.Spec.UserRef.Name}
}

// botFacts are those of a Bot and its tokens, and none of a Bot that is nil.
func botFacts(org string, b *v1alpha1.Bot) (keys []tenancy.FactKey) {
	if b == nil {
		return nil
	}
	key := tenancy.FactKey{Kind: tenancy.FactBot, Org: org, Workspace: b.Spec.WorkspaceRef.Name, Subject: b.Name}
	keys = append(keys, key)
	for _, t := range b.Spec.Tokens {
		key.Kind, key.Token = tenancy.FactToken, t.ID
		keys = append(keys, key)
	}
	return keys
}

// accessFacts are the facts in the caches.
type accessFacts struct {
	views *views.Views
	// issuers are the identity providers whose jobs Bots may trust.
	issuers []string
}

// Keys implements records.Facts.
func (a accessFacts) Keys() (keys []tenancy.FactKey) {
	for _, u := range a.views.People() {
		keys = append(keys, userFact(u.Name))
	}
	for _, org := range a.views.Orgs() {
		keys = append(keys, a.in(org.UUID())...)
	}
	return keys
}

// in are those of an Organization.
func (a accessFacts) in(uuid string) []tenancy.FactKey {
	keys := []tenancy.FactKey{orgFact(uuid)}
	org, ok := a.views.Org(uuid)
	if !ok || org.ClusterID == "" {
		return keys
	}
	for _, m := range a.views.MembershipsIn(org.ClusterID) {
		keys = append(keys, memberFact(uuid, m))
	}
	for _, ws := range a.views.Workspaces(uuid) {
		keys = append(keys, tenancy.FactKey{Kind: tenancy.FactWorkspace, Org: uuid, Workspace: ws.UUID})
	}
	for _, b := range a.views.Bots.InCluster(org.ClusterID) {
		keys = append(keys, botFacts(uuid, b)...)
	}
	return keys
}

// Fact implements records.Facts.
func (a accessFacts) Fact(k tenancy.FactKey) (f tenancy.AccessFact, ok bool) {
	if k.Kind == tenancy.FactUser {
		u, ok := a.views.ByName(k.Subject)
		return f, ok && tenancy.MayAct(u, false) == nil
	}
	org, ok := a.views.Org(k.Org)
	if !ok {
		return f, false
	}
	switch k.Kind {
	case tenancy.FactOrg:
		return tenancy.AccessFact{Name: org.Spec.DisplayName, DefaultAccess: org.Spec.DefaultAccess}, !org.Deleted()
	case tenancy.FactWorkspace:
		ws, ok := a.views.Workspace(k.Org, k.Workspace)
		return tenancy.AccessFact{Name: ws.DisplayName, ExpiresAt: endText(ws.ExpiresAt)}, ok && !ws.Deleted()
	case tenancy.FactMember:
		m, ok := a.views.Membership(org.ClusterID, tenancy.MembershipName(k.Subject, k.Workspace))
		if !ok || !m.DeletionTimestamp.IsZero() {
			return f, false
		}
		return memberAccess(m), true
	case tenancy.FactBot, tenancy.FactToken:
		b, ok := a.views.Bot(org.ClusterID, k.Workspace, k.Subject)
		if !ok {
			return f, false
		}
		if k.Kind == tenancy.FactBot {
			return tenancy.AccessFact{Name: b.Spec.DisplayName, Role: b.Spec.Role}, true
		}
		t, ok := tenancy.FindToken(b.Spec.Tokens, k.Token)
		accepted := ok && t.SecretUID != "" && tenancy.AccountReady(b) && tenancy.Trusted(b, t, a.issuers)
		return tenancy.AccessFact{Name: t.Name, ExpiresAt: endText(&t.ExpiresAt)}, accepted
	case tenancy.FactUser:
	}
	return f, false
}

// memberAccess is what a Membership of the caches gives, by all its parts.
func memberAccess(m *v1alpha1.Membership) tenancy.AccessFact {
	sources := []string{}
	if tenancy.ByHand(m) {
		sources = append(sources, tenancy.SourceHand)
	}
	for _, part := range tenancy.ExtrasOf(m) {
		sources = append(sources, part.Source)
	}
	f := tenancy.AccessFact{
		Role: m.Spec.Role, Sudo: m.Spec.Sudo, Manager: m.Spec.Manager, Sources: encoded(sources), ExpiresAt: endText(m.Spec.ExpiresAt),
	}
	if len(m.Spec.Roles) > 0 {
		f.Roles = encoded(m.Spec.Roles)
	}
	return f
}

// encoded is JSON of texts, which can always be encoded.
func encoded(value any) string {
	raw, _ := json.Marshal(value)
	return string(raw)
}

func endText(end *metav1.Time) string {
	if end == nil {
		return ""
	}
	return tenancy.ExpiryText(end)
}
