package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Truth is the state of a hub's root workspace in kcp, read with the rights of kcp's
// admin.
type Truth struct {
	// PersonalOrgs is true if every User must have a personal Org.
	PersonalOrgs bool
	Users        map[string]*v1alpha1.User
	Indexes      map[string]*v1alpha1.UserMembershipIndex
	Orgs         map[string]*TruthOrg
}

// TruthOrg is an Organization, complete or in part, with the objects in its workspace.
type TruthOrg struct {
	// Organization and Workspace (the workspace of the Org) are nil if missing.
	Organization *v1alpha1.Organization
	Workspace    *kcptenancyv1alpha1.Workspace
	// Closed is true if kcp refuses all access to the workspace.
	Closed      bool
	Memberships map[string]*v1alpha1.Membership
	Bots        map[string]*v1alpha1.Bot
	Entries     map[string]*v1alpha1.CatalogEntry
	Invitations map[string]*v1alpha1.Invitation
	Requests    map[string]*v1alpha1.AccessRequest
	Workspaces  map[string]*TruthWorkspace
}

// TruthWorkspace is a child Workspace with the objects that the hub keeps in it.
type TruthWorkspace struct {
	*kcptenancyv1alpha1.Workspace
	Closed      bool
	Bindings    map[string]*rbacv1.ClusterRoleBinding
	Roles       map[string]*rbacv1.ClusterRole
	APIBindings map[string]*kcpapisv1alpha2.APIBinding
	// Accounts and Secrets are those of Bots.
	Accounts map[string]*corev1.ServiceAccount
	Secrets  map[string]*corev1.Secret
}

// ReadTruth reads the objects below root. If people are named, it reads only these Users,
// the Orgs that they created and the Orgs without a creator.
func ReadTruth(ctx context.Context, clients *kcp.Clients, root string, people ...string) (*Truth, error) {
	asked := func(string) bool { return true }
	if len(people) > 0 {
		named := map[string]bool{"": true}
		for _, name := range people {
			named[name] = true
		}
		asked = func(name string) bool { return named[name] }
	}
	truth := &Truth{Users: map[string]*v1alpha1.User{}, Indexes: map[string]*v1alpha1.UserMembershipIndex{}, Orgs: map[string]*TruthOrg{}}
	var users v1alpha1.UserList
	var indexes v1alpha1.UserMembershipIndexList
	var orgs v1alpha1.OrganizationList
	var workspaces kcptenancyv1alpha1.WorkspaceList
	// Organizations are listed last. An Organization that is created or deleted meanwhile
	// must not make its workspace look orphaned.
	if err := list(ctx, clients.Workspaces(root+":orgs").GetClient(), "workspaces", &workspaces); err != nil {
		return nil, err
	}
	if err := list(ctx, clients.Indexes(root+":users").GetClient(), "usermembershipindexes", &indexes); err != nil {
		return nil, err
	}
	if err := list(ctx, clients.Users(root+":users").GetClient(), "users", &users); err != nil {
		return nil, err
	}
	if err := list(ctx, clients.Organizations(root+":orgs").GetClient(), "organizations", &orgs); err != nil {
		return nil, err
	}
	for i := range users.Items {
		if asked(users.Items[i].Name) {
			truth.Users[users.Items[i].Name] = &users.Items[i]
		}
	}
	for i := range indexes.Items {
		if asked(indexes.Items[i].Name) {
			truth.Indexes[indexes.Items[i].Name] = &indexes.Items[i]
		}
	}
	others := map[string]bool{}
	for i := range orgs.Items {
		o := &orgs.Items[i]
		if others[o.Name] = !asked(o.Annotations[v1alpha1.CreatedByAnnotation]); !others[o.Name] {
			truth.Orgs[o.Name] = &TruthOrg{Organization: o}
		}
	}
	for i := range workspaces.Items {
		ws := &workspaces.Items[i]
		// A spare is nobody's until there is an Organization of its name.
		if others[ws.Name] || truth.Orgs[ws.Name] == nil && tenancy.IsSpare(ws) {
			continue
		}
		if truth.Orgs[ws.Name] == nil {
			truth.Orgs[ws.Name] = &TruthOrg{}
		}
		truth.Orgs[ws.Name].Workspace = ws
	}
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(8)
	for _, org := range truth.Orgs {
		reading.Go(func() error { return org.read(ctx, clients) })
	}
	return truth, reading.Wait()
}

func (o *TruthOrg) read(ctx context.Context, clients *kcp.Clients) error {
	o.Memberships, o.Bots, o.Workspaces = map[string]*v1alpha1.Membership{}, map[string]*v1alpha1.Bot{}, map[string]*TruthWorkspace{}
	o.Entries, o.Invitations = map[string]*v1alpha1.CatalogEntry{}, map[string]*v1alpha1.Invitation{}
	o.Requests = map[string]*v1alpha1.AccessRequest{}
	if o.Workspace == nil || o.Workspace.Spec.Cluster == "" {
		return nil
	}
	cluster := o.Workspace.Spec.Cluster
	var memberships v1alpha1.MembershipList
	var bots v1alpha1.BotList
	var entries v1alpha1.CatalogEntryList
	var invitations v1alpha1.InvitationList
	var requests v1alpha1.AccessRequestList
	var workspaces kcptenancyv1alpha1.WorkspaceList
	err := list(ctx, clients.Memberships(cluster).GetClient(), "memberships", &memberships)
	if err == nil {
		err = list(ctx, clients.Bots(cluster).GetClient(), "bots", &bots)
	}
	if err == nil {
		err = list(ctx, clients.CatalogEntries(cluster).GetClient(), "catalogentries", &entries)
	}
	if err == nil {
		err = list(ctx, clients.Invitations(cluster).GetClient(), "invitations", &invitations)
	}
	if err == nil {
		err = list(ctx, clients.AccessRequests(cluster).GetClient(), "accessrequests", &requests)
	}
	if err == nil {
		err = list(ctx, clients.Workspaces(cluster).GetClient(), "workspaces", &workspaces)
	}
	if apierrors.IsForbidden(err) {
		o.Closed = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("the Org %s: %w", o.Workspace.Name, err)
	}
	for i := range memberships.Items {
		o.Memberships[memberships.Items[i].Name] = &memberships.Items[i]
	}
	for i := range bots.Items {
		o.Bots[bots.Items[i].Name] = &bots.Items[i]
	}
	for i := range entries.Items {
		o.Entries[entries.Items[i].Name] = &entries.Items[i]
	}
	for i := range invitations.Items {
		o.Invitations[invitations.Items[i].Name] = &invitations.Items[i]
	}
	for i := range requests.Items {
		o.Requests[requests.Items[i].Name] = &requests.Items[i]
	}
	var mu sync.Mutex
	reading, ctx := errgroup.WithContext(ctx)
	workspaces.Items = slices.DeleteFunc(workspaces.Items, func(ws kcptenancyv1alpha1.Workspace) bool { return tenancy.IsSpare(&ws) })
	for i := range workspaces.Items {
		ws := &TruthWorkspace{Workspace: &workspaces.Items[i], Bindings: map[string]*rbacv1.ClusterRoleBinding{}, Roles: map[string]*rbacv1.ClusterRole{}, APIBindings: map[string]*kcpapisv1alpha2.APIBinding{}, Accounts: map[string]*corev1.ServiceAccount{}, Secrets: map[string]*corev1.Secret{}}
		reading.Go(func() error {
			err := ws.read(ctx, clients)
			mu.Lock()
			defer mu.Unlock()
			o.Workspaces[ws.Name] = ws
			return err
		})
	}
	return reading.Wait()
}

func (w *TruthWorkspace) read(ctx context.Context, clients *kcp.Clients) error {
	if w.Spec.Cluster == "" {
		return nil
	}
	var bindings rbacv1.ClusterRoleBindingList
	var roles rbacv1.ClusterRoleList
	err := list(ctx, clients.ClusterRoleBindings(w.Spec.Cluster).GetClient(), "clusterrolebindings", &bindings)
	if err == nil {
		err = list(ctx, clients.ClusterRoles(w.Spec.Cluster).GetClient(), "clusterroles", &roles)
	}
	var apis kcpapisv1alpha2.APIBindingList
	if err == nil {
		err = list(ctx, clients.APIBindings(w.Spec.Cluster).GetClient(), "apibindings", &apis)
	}
	var accounts corev1.ServiceAccountList
	var secrets corev1.SecretList
	if err == nil {
		err = list(ctx, clients.ServiceAccounts(w.Spec.Cluster, "default").GetClient(), "serviceaccounts", &accounts)
	}
	if err == nil {
		err = list(ctx, clients.Secrets(w.Spec.Cluster, "default").GetClient(), "secrets", &secrets)
	}
	if apierrors.IsForbidden(err) {
		w.Closed = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("the Workspace %s: %w", w.Name, err)
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; strings.HasPrefix(b.Name, "kedge:") {
			w.Bindings[b.Name] = b
		}
	}
	for i := range roles.Items {
		if r := &roles.Items[i]; strings.HasPrefix(r.Name, "kedge:") {
			w.Roles[r.Name] = r
		}
	}
	for i := range apis.Items {
		w.APIBindings[apis.Items[i].Name] = &apis.Items[i]
	}
	for i := range accounts.Items {
		if s := &accounts.Items[i]; s.Labels[v1alpha1.BotAccountLabel] != "" {
			w.Accounts[s.Name] = s
		}
	}
	for i := range secrets.Items {
		if s := &secrets.Items[i]; s.Labels[v1alpha1.BotAccountLabel] != "" {
			w.Secrets[s.Name] = s
		}
	}
	return nil
}

func list(ctx context.Context, client rest.Interface, resource string, into runtime.Object) error {
	return client.Get().Resource(resource).Do(ctx).Into(into)
}
