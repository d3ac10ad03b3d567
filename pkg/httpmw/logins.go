package httpmw

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
)

// Logins limits requests per peer and in all, with the rates per second. Zero means no limit. The
// func returns an error for a request that is one too many; it takes the request's context. The
// login endpoints report the error in their own form.
func (l *Limits) Logins(perPeer, all float64) func(context.Context) error {
	return l.peerRates("logins", perPeer, all).take
}

// DeviceLogins is Logins for the logins of devices that begin.
func (l *Limits) DeviceLogins(perPeer, all float64) func(context.Context) error {
	return l.peerRates("device_logins", perPeer, all).take
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
