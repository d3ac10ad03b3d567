package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/faroshq/kedge-hub/pkg/errs"
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

// KCPUsername asks kcp which username it derives from a token. The error has the code
// errs.Unauthenticated if kcp does not accept the token.
type KCPUsername func(ctx context.Context, token string) (string, error)

// Comparison authenticates people with another Authenticator and compares the username with
// the one that kcp derives: rights in kcp are bound to it. It compares one token of each
// issuer. The first match is valid for the life of the process, because hub and kcp derive all
// usernames of an issuer by the same configuration. A static token that kcp does not accept is
// admitted: it has no rights in kcp, and kcp refuses the requests that are forwarded with it.
type Comparison struct {
	next  Authenticator
	ask   KCPUsername
	clock clock.PassiveClock

	flight singleflight.Group
	// answers are those of kcp that are no match, by Identity.Credential: answer values.
	answers *lru.Cache

	mu sync.Mutex
	// issuers has nil for an issuer with a match, and otherwise the error.
	issuers map[string]error
}

// answer is what a credential gets until kcp is asked again.
type answer struct {
	at  time.Time
	err error
}

// NewComparison returns a Comparison in front of next.
func NewComparison(next Authenticator, ask KCPUsername, k clock.PassiveClock) *Comparison {
	return &Comparison{next: next, ask: ask, clock: k, answers: lru.New(maxAnswers), issuers: map[string]error{}}
}

// Authenticate implements Authenticator.
func (c *Comparison) Authenticate(ctx context.Context, token string) (*Identity, bool, error) {
	id, ok, err := c.next.Authenticate(ctx, token)
	if err != nil || !ok || id.Kind != Person || c.matches(id.Issuer) {
		return id, ok, err
	}
	if held, ok := c.answers.Get(id.Credential); ok {
		if held := held.(answer); c.clock.Since(held.at) < askAgain {
			return admitted(id, held.err)
		}
	}
	// The request outlives its caller, because others may wait for it.
	result := c.flight.DoChan(id.Credential, func() (any, error) {
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
	username, err := c.ask(ctx, token)
	switch {
	case errs.Is(err, errs.Unauthenticated):
		c.set(id.Issuer, fmt.Errorf("kcp does not accept its tokens: give kcp %s", flagsOfKCP(id.Issuer)))
		if id.Issuer == StaticIssuer {
			return c.remember(id, nil)
		}
		// kcp may not have reached the issuer yet.
		return c.remember(id, unavailable(err, askAgain))
	case err != nil:
		return unavailable(err, time.Second)
	case username != id.Username:
		c.set(id.Issuer, fmt.Errorf("kcp knows as %q whom the hub knows as %q: give kcp %s", username, id.Username, flagsOfKCP(id.Issuer)))
		return c.remember(id, errMismatch())
	}
	c.set(id.Issuer, nil)
	return nil
}

// remember keeps what a credential gets, so that it does not cost a request to kcp each time.
func (c *Comparison) remember(id *Identity, err error) error {
	c.answers.Add(id.Credential, answer{c.clock.Now(), err})
	return err
}

// set sets what is wrong with an issuer. A match stays.
func (c *Comparison) set(issuer string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.issuers[issuer]; !ok || before != nil {
		c.issuers[issuer] = err
	}
}

// Err returns which issuers kcp derives other usernames for, or nil. It is for operators.
func (c *Comparison) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []error
	for issuer, err := range c.issuers {
		if err != nil {
			all = append(all, fmt.Errorf("the issuer %s: %w", issuer, err))
		}
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(all...)
}

func flagsOfKCP(issuer string) string {
	if issuer == StaticIssuer {
		return "the hub's --token-file as --token-auth-file"
	}
	return "the issuer, audiences, username claim and prefix of the hub's --oidc-* flags in --authentication-config or --oidc-*"
}

func errMismatch() error {
	return errs.New(errs.Forbidden, "kcp knows this credential under another username than the hub; tell the operator, whose /readyz?verbose names the flag")
}
