package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Store writes Users, Organizations and Workspaces. Every method is bounded by
// its context, tries again what may heal by itself, and returns *errs.Error.
type Store struct {
	clients     *kcp.Clients
	tree        tenancy.Tree
	users, orgs string
	turns       turns
}

// New returns a store that writes Users and Organizations to the logical
// clusters of those IDs.
func New(clients *kcp.Clients, tree tenancy.Tree, users, orgs string) *Store {
	return &Store{clients: clients, tree: tree, users: users, orgs: orgs}
}

// CreateUser makes a User. It is AlreadyExists where the name is taken.
func (s *Store) CreateUser(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error) {
	return create(ctx, s.clients.Users(s.users), u, "user")
}

// GetUser reads a User from kcp itself: for sign-up only, which must not trust a
// view that is behind.
func (s *Store) GetUser(ctx context.Context, name string) (*v1alpha1.User, error) {
	u, err := s.clients.Users(s.users).Get(ctx, name, metav1.GetOptions{})
	return u, convert(err, "user")
}

// PatchUser changes a User by a JSON merge patch. Where match is not nil it judges
// the resource version that is changed, and refuses the change with its error.
func (s *Store) PatchUser(ctx context.Context, name string, patch any, match func(version string) error) (*v1alpha1.User, error) {
	return mergePatch(ctx, &s.turns, s.clients.Users(s.users), name, patch, match, "user")
}

// PatchOrganization is PatchUser for an Organization.
func (s *Store) PatchOrganization(ctx context.Context, uuid string, patch any, match func(version string) error) (*v1alpha1.Organization, error) {
	return mergePatch(ctx, &s.turns, s.clients.Organizations(s.orgs), uuid, patch, match, "organization")
}

// PatchWorkspace is PatchUser for a child Workspace of org, which is kcp's object.
func (s *Store) PatchWorkspace(ctx context.Context, orgCluster, org, workspace string, patch any, match func(version string) error) (tenancy.Workspace, error) {
	ws, err := mergePatch(ctx, &s.turns, s.clients.Workspaces(orgCluster), workspace, patch, match, "workspace")
	if err != nil {
		return tenancy.Workspace{}, err
	}
	return tenancy.WorkspaceOf(org, ws), nil
}

// create makes an object under a name that only this caller uses. A retry that
// finds it there has been here before: the answer to the first try was lost.
func create[T kcp.Object](ctx context.Context, client *kcp.Client[T], o T, what string) (T, error) {
	var out T
	tries, there := 0, false
	err := retry(ctx, func(ctx context.Context) error {
		var err error
		if !there {
			tries++
			out, err = client.Create(ctx, o, metav1.CreateOptions{FieldManager: kcp.FieldManager})
			if there = apierrors.IsAlreadyExists(err) && tries > 1; !there {
				return err
			}
		}
		out, err = client.Get(ctx, o.GetName(), metav1.GetOptions{})
		return err
	})
	return out, convert(err, what)
}

func mergePatch[T kcp.Object](ctx context.Context, turns *turns, client *kcp.Client[T], name string, patch any, match func(version string) error, what string) (T, error) {
	var out T
	raw, err := json.Marshal(patch)
	if err != nil {
		return out, errs.Wrap(errs.Internal, fmt.Errorf("encode the patch: %w", err), "the "+what+" could not be written")
	}
	if match != nil {
		return patchIf(ctx, turns, client, name, raw, match, what)
	}
	err = retry(ctx, func(ctx context.Context) error {
		out, err = client.Patch(ctx, name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: kcp.FieldManager})
		if apierrors.IsConflict(err) {
			// The patch names no version: kcp itself lost to others too often.
			return errs.Wrap(errs.Unavailable, err, "the "+what+" is being changed by others all the time; try again")
		}
		return err
	})
	return out, convert(err, what)
}

// How often, and after which pauses, a write is tried.
const (
	maxTries   = 9
	firstPause = 20 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// retry tries again, within the context, what a moment may heal. It does not wait
// for longer than callers do for a kcp that is gone.
func retry(ctx context.Context, f func(context.Context) error) error {
	began, pause := time.Now(), firstPause
	for try := 1; ; try++ {
		err := f(ctx)
		if err == nil || !errs.Is(convert(err, ""), errs.Unavailable) || ctx.Err() != nil || try == maxTries {
			return err
		}
		if errs.Is(err, errs.Unavailable) && time.Since(began) > kcp.Patience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait.Jitter(pause, 0.3)):
		}
		pause = min(2*pause, lastPause)
	}
}
