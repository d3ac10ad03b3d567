package store

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/keylock"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Store writes Users, Organizations, Workspaces and Memberships. Every method ends with its
// context, retries transient failures and returns errors of type *errs.Error.
type Store struct {
	clients     *kcp.Clients
	tree        tenancy.Tree
	users, orgs string
	// turns are the locks of the writers of one object, sessionTurns those of Sessions: the change
	// of a User writes Sessions.
	turns, sessionTurns *keylock.Locks
}

// New returns a Store. users and orgs are the IDs of the logical clusters of Users and
// Organizations.
func New(clients *kcp.Clients, tree tenancy.Tree, users, orgs string) *Store {
	return &Store{clients: clients, tree: tree, users: users, orgs: orgs, turns: keylock.New(), sessionTurns: keylock.New()}
}

// CreateUser creates a User. The error is AlreadyExists if the name is taken.
func (s *Store) CreateUser(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error) {
	return create(ctx, s.clients.Users(s.users), u, "user")
}

// GetUser gets a User from kcp. It is for sign-up, which must not trust a cache.
func (s *Store) GetUser(ctx context.Context, name string) (*v1alpha1.User, error) {
	u, err := s.clients.Users(s.users).Get(ctx, name, metav1.GetOptions{})
	return u, convert(err, "user")
}

// GetOrganization gets an Organization from kcp.
func (s *Store) GetOrganization(ctx context.Context, uuid string) (*v1alpha1.Organization, error) {
	return read(ctx, s.clients.Organizations(s.orgs), uuid, "organization")
}

// create creates an object under a name that only this caller uses. If a retry finds that it
// exists, the first attempt created it and its answer was lost.
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

// The number of attempts of a write, and the first and the longest pause between them.
const (
	maxTries   = 9
	firstPause = 20 * time.Millisecond
	lastPause  = 250 * time.Millisecond
	// maxBusy is the time after which a request that kcp is too busy for is not repeated.
	maxBusy = 5 * time.Second
)

// pauses are the delays between attempts. They double from the first to lastPause.
func pauses(first time.Duration) wait.DelayFunc {
	return wait.Backoff{Duration: first, Factor: 2, Jitter: 0.3, Steps: maxTries, Cap: lastPause}.DelayFunc()
}

// retry calls f again after transient failures, until the context ends or the attempts are
// used up. While kcp is unavailable it does so for at most transport.MaxWait, and while kcp is
// busy for maxBusy: client-go waits as long as kcp asks for within each attempt already.
func retry(ctx context.Context, f func(context.Context) error) error {
	began, try := time.Now(), 0
	var err error
	_ = pauses(firstPause).Until(ctx, true, true, func(ctx context.Context) (done bool, _ error) {
		err = f(ctx)
		try++
		if err == nil || !errs.Is(convert(err, ""), errs.Unavailable) || ctx.Err() != nil || try == maxTries {
			return true, nil
		}
		passed := time.Since(began)
		return errs.Is(err, errs.Unavailable) && passed > transport.MaxWait || apierrors.IsTooManyRequests(err) && passed > maxBusy, nil
	})
	return err
}
