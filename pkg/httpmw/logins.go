package httpmw

import (
	"context"
	"net/http"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// Logins limits requests per peer and in all, with the rates per second. It answers 429 with
// Retry-After to more. Zero means no limit. It needs no caller.
func (l *Limits) Logins(perPeer, all float64) func(http.Handler) http.Handler {
	rates := l.peerRates("logins", perPeer, all)
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			if err := rates.take(r.Context()); err != nil {
				return err
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// SignUps limits sign-ups per peer and in all, with the rates per second. Zero means no limit. The
// context of a sign-up must be that of its request.
func (l *Limits) SignUps(signUp SignUp, perPeer, all float64) SignUp {
	rates := l.peerRates("sign_ups", perPeer, all)
	return func(ctx context.Context, id *auth.Identity, vouched bool) (*v1alpha1.User, error) {
		if err := rates.take(ctx); err != nil {
			return nil, err
		}
		return signUp(ctx, id, vouched)
	}
}

// peerRates are a limit per peer and one in all.
type peerRates struct{ perPeer, all *buckets }

func (l *Limits) peerRates(limit string, perPeer, all float64) peerRates {
	return peerRates{l.buckets(limit+"_per_peer", perPeer), l.buckets(limit, all)}
}

// take asks the limit per peer first, so that one peer cannot use up the limit of all.
func (p peerRates) take(ctx context.Context) error {
	if err := p.perPeer.take(network(peerFrom(ctx))); err != nil {
		return err
	}
	return p.all.take(nil)
}
