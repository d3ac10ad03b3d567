package auth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/recent"
)

const (
	// maxAnswers is the maximum number of credentials for which kcp's answer is remembered.
	maxAnswers = 4096
	// askAgain is the time for which an answer other than a match is cached, and the Retry-After
	// for a client while kcp does not accept its token.
	askAgain = 10 * time.Second
	// askTimeout limits one request to kcp.
	askTimeout = 5 * time.Second
)

// allAuthenticated is the group that kcp gives to everybody who has authenticated.
const allAuthenticated = "system:authenticated"

// KCPUser asks kcp which username and groups it derives from a token. The error has the code
// errs.Unauthenticated if kcp does not accept the token.
type KCPUser func(ctx context.Context, token string) (username string, groups []string, err error)

// Comparison authenticates people with another Authenticator and compares the username with
// the one that kcp derives: rights in kcp are bound to it.
//
// It compares one ID token of each issuer. The first match is valid for the life of the process,
// because hub and kcp derive all usernames of an issuer by the same configuration. It compares
// every static token once, and again after the token file was read again: each row is a mapping
// of its own, and kcp may have another row for the token. kcp must give a static token no group
// that the file does not. A static token that kcp does not accept is admitted: it has no rights
// in kcp, and kcp refuses the requests that are forwarded with it.
type Comparison struct {
	next  Authenticator
	ask   KCPUser
	known func(*Identity) bool
	clock clock.PassiveClock

	flight singleflight.Group
	// answers are those of kcp, without the matches of issuers other than the token file, by
	// Identity.Credential.
	answers *recent.Cache[string, answer]

	mu sync.Mutex
	// issuers has nil for an issuer with a match, and otherwise the error. The token file is not in
	// it.
	issuers map[string]error
	// static are the static tokens that do not match, by Identity.Credential.
	static map[string]problem
}

// answer is what a credential gets until kcp is asked again.
type answer struct {
	at  time.Time
	err error
	// of is the identity of a static token that matches. The answer is valid as long as the
	// token has this identity, which is another object after the file was read again.
	of *Identity
}

// problem is why a static token does not match.
type problem struct {
	of  *Identity
	err error
}

// NewComparison returns a Comparison in front of next. known reports whether the token file still
// gives an identity to its token: Err is silent about one that it does not.
func NewComparison(next Authenticator, ask KCPUser, known func(*Identity) bool, k clock.PassiveClock) *Comparison {
	return &Comparison{
		next: next, ask: ask, known: known, clock: k, answers: recent.New[string, answer](maxAnswers),
		issuers: map[string]error{}, static: map[string]problem{},
	}
}

// Authenticate implements Authenticator.
func (c *Comparison) Authenticate(ctx context.Context, token string) (*Identity, bool, error) {
	id, ok, err := c.next.Authenticate(ctx, token)
	if err != nil || !ok || id.Kind != Person || c.matches(id.Issuer) {
		return id, ok, err
	}
	if held, ok := c.answers.Get(id.Credential); ok {
		switch {
		case held.of == id:
			return id, true, nil
		case held.of == nil && c.clock.Since(held.at) < askAgain:
			return admitted(id, held.err)
		}
	}
	// The request outlives its caller, because others may wait for it. A token that has another
	// identity meanwhile does not wait for it.
	result := c.flight.DoChan(fmt.Sprintf("%s %p", id.Credential, id), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		return nil, c.compare(ctx, token, id)
	})
	select {
	case <-ctx.Done():
		return nil, false, unavailable(ctx.Err(), time.Second)
	case r := <-result:
		return admitted(id, r.Err)
	}
}

func admitted(id *Identity, err error) (*Identity, bool, error) {
	if err != nil {
		return nil, false, err
	}
	return id, true, nil
}

func (c *Comparison) matches(issuer string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, ok := c.issuers[issuer]
	return ok && err == nil
}

func (c *Comparison) compare(ctx context.Context, token string, id *Identity) error {
	username, groups, err := c.ask(ctx, token)
	switch {
	case errs.Is(err, errs.Unauthenticated):
		c.set(id, fmt.Errorf("kcp does not accept its tokens: give kcp %s", flagsOfKCP(id.Issuer)))
		if id.Issuer == StaticIssuer {
			return c.remember(id, nil)
		}
		// kcp may not have reached the issuer yet.
		return c.remember(id, unavailable(err, askAgain))
	case err != nil:
		return unavailable(err, time.Second)
	case username != id.Username:
		c.set(id, fmt.Errorf("kcp knows as %q whom the hub knows as %q: give kcp %s", username, id.Username, flagsOfKCP(id.Issuer)))
		return c.remember(id, errMismatch())
	case id.Issuer == StaticIssuer:
		if added := added(groups, id.Groups); len(added) > 0 {
			c.set(id, fmt.Errorf("kcp gives %q the groups %q, which the hub does not know: give kcp %s", id.Username, added, flagsOfKCP(id.Issuer)))
			return c.remember(id, errMismatch())
		}
		c.answers.Put(id.Credential, answer{of: id})
	}
	c.set(id, nil)
	return nil
}

// added returns the groups that kcp has and the hub has not.
func added(kcp, hub []string) []string {
	return slices.DeleteFunc(slices.Clone(kcp), func(group string) bool {
		return group == allAuthenticated || slices.Contains(hub, group)
	})
}

// remember keeps what a credential gets, so that it does not cost a request to kcp each time.
func (c *Comparison) remember(id *Identity, err error) error {
	c.answers.Put(id.Credential, answer{at: c.clock.Now(), err: err})
	return err
}

// set sets what is wrong with an issuer, or with a static token. A match of an issuer stays.
func (c *Comparison) set(id *Identity, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id.Issuer == StaticIssuer {
		delete(c.static, id.Credential)
		if err != nil {
			c.static[id.Credential] = problem{id, err}
		}
		return
	}
	if before, ok := c.issuers[id.Issuer]; !ok || before != nil {
		c.issuers[id.Issuer] = err
	}
}

// Err returns the issuers and static users for which kcp derives something else, or nil. It is for
// operators.
func (c *Comparison) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.static, func(_ string, p problem) bool { return !c.known(p.of) })
	var all []error
	add := func(issuer string, err error) {
		if err != nil {
			all = append(all, fmt.Errorf("the issuer %s: %w", issuer, err))
		}
	}
	for issuer, err := range c.issuers {
		add(issuer, err)
	}
	for _, p := range c.static {
		add(StaticIssuer, p.err)
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(slices.CompactFunc(all, func(a, b error) bool { return a.Error() == b.Error() })...)
}

func flagsOfKCP(issuer string) string {
	if issuer == StaticIssuer {
		return "the hub's --token-file as --token-auth-file"
	}
	return "the issuer, audiences, username claim and prefix of the hub's --oidc-* flags in --authentication-config or --oidc-*"
}

func errMismatch() error {
	return errs.New(errs.Forbidden,
		"kcp knows this credential under another username than the hub, or with further groups; tell the operator, whose /readyz?verbose names the flag")
}
