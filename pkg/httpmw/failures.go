package httpmw

import (
	"context"
	"crypto/sha256"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/recent"
)

// maxAccepted is the number of tokens that the limit of failed authentications remembers as
// accepted, least recently used first out.
const maxAccepted = 20_000

// Authenticator returns inner with a limit of failures per peer. A peer over the limit gets no
// token verified that was not accepted before by this process: the error is TooManyRequests.
// Tokens that were accepted pass, and those that handedOut reports, so that a flood of bad tokens
// does not lock out the people behind the same address. A genuine token that has ended, or that no
// Bot lists, is no failure either: it costs a look into the caches, and a client that has not
// noticed would lock out its neighbours. handedOut judges a token by what it says, which nobody has verified: it
// must ask for what only holders of a genuine token know. What cannot be verified at the moment is no failure. Zero
// means no limit. The context must be that of a request behind Observe.
func (l *Limits) Authenticator(inner auth.Authenticator, perSecond float64, handedOut func(token string) bool) auth.Authenticator {
	if perSecond == 0 {
		return inner
	}
	failures, accepted := l.buckets("failed_authentications_per_peer", perSecond), recent.New[[sha256.Size]byte, struct{}](maxAccepted)
	return &guarded{inner: inner, failures: failures, accepted: accepted, handedOut: handedOut}
}

type guarded struct {
	inner    auth.Authenticator
	failures *buckets
	// accepted has the SHA-256 hashes of tokens.
	accepted  *recent.Cache[[sha256.Size]byte, struct{}]
	handedOut func(token string) bool
}

// Authenticate implements auth.Authenticator.
func (g *guarded) Authenticate(ctx context.Context, token string) (*auth.Identity, bool, error) {
	peer, hash := network(peerFrom(ctx)), sha256.Sum256([]byte(token))
	_, known := g.accepted.Get(hash)
	if !known && g.failures.empty(peer) && !g.handedOut(token) {
		return nil, false, g.failures.refuse()
	}
	id, ok, err := g.inner.Authenticate(ctx, token)
	switch {
	case ok && err == nil:
		if !known {
			g.accepted.Put(hash, struct{}{})
		}
	case errs.Is(err, errs.Unavailable), ctx.Err() != nil:
	default:
		g.failures.spend(peer)
	}
	return id, ok, err
}
