package httpmw

import (
	"context"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// LoginRates are the rates of the limits under /auth, per second. Zero means no limit.
type LoginRates struct {
	// PerPeer is the rate of requests of one peer that prove nothing.
	PerPeer float64
	// PerSession is the rate of requests with a genuine secret of one session or one login.
	PerSession float64
	// PerPerson is the rate of logins of one person.
	PerPerson float64
	// Exchanges is the rate of codes that are presented to the identity provider. Networks share it.
	Exchanges float64
	// Devices is the rate of logins of devices that begin. Networks share it. DevicesPerPeer is
	// the rate of those of one peer.
	Devices, DevicesPerPeer float64
}

// Logins are the limits under /auth. No request without a proof takes anything that all clients have
// in common: a flood of strangers uses up what their own networks have. The methods return an error
// for a request that is one too many. Contexts are those of requests.
type Logins struct {
	perPeer, perSession, perPerson, devicesPerPeer *buckets
	exchanges, devices                             *shares
}

// Logins returns the limits under /auth.
func (l *Limits) Logins(r LoginRates) *Logins {
	return &Logins{
		perPeer: l.buckets("logins_per_peer", r.PerPeer), perSession: l.buckets("logins_per_session", r.PerSession),
		perPerson: l.buckets("logins_per_person", r.PerPerson), exchanges: l.shares("logins", r.Exchanges),
		devicesPerPeer: l.buckets("device_logins_per_peer", r.DevicesPerPeer), devices: l.shares("device_logins", r.Devices),
	}
}

// Stranger takes a request that proves nothing.
func (l *Logins) Stranger(ctx context.Context) error { return l.perPeer.take(network(peerFrom(ctx))) }

// Session takes a request with a genuine secret. key names the session or the login of the secret.
func (l *Logins) Session(key string) error { return l.perSession.take(key) }

// Person takes a login of a person whom the identity provider has authenticated.
func (l *Logins) Person(user string) error { return l.perPerson.take(user) }

// Exchange takes a code that is presented to the identity provider.
func (l *Logins) Exchange(ctx context.Context) error { return l.exchanges.take(peerFrom(ctx)) }

// Device takes a login of a device that begins.
func (l *Logins) Device(ctx context.Context) error {
	if err := l.devicesPerPeer.take(network(peerFrom(ctx))); err != nil {
		return err
	}
	return l.devices.take(peerFrom(ctx))
}

// SignUpLimit limits sign-ups per peer and in all. Only people whom SignUp creates take from it.
type SignUpLimit struct{ perPeer, all *buckets }

// SignUps returns the limit of sign-ups, with the rates per second. Zero means no limit.
func (l *Limits) SignUps(perPeer, all float64) *SignUpLimit {
	return &SignUpLimit{perPeer: l.buckets("sign_ups_per_peer", perPeer), all: l.buckets("sign_ups", all)}
}

// take takes a sign-up. The context is that of its request. settle is called with the error of the
// sign-up: a person who was refused took nothing.
func (s *SignUpLimit) take(ctx context.Context) (settle func(error), err error) {
	peer := network(peerFrom(ctx))
	if err := s.perPeer.take(peer); err != nil {
		return nil, err
	}
	if err := s.all.take(nil); err != nil {
		s.perPeer.giveBack(peer)
		return nil, err
	}
	return func(err error) {
		if err != nil && httpapi.StatusOf(err) < http.StatusInternalServerError {
			s.perPeer.giveBack(peer)
			s.all.giveBack(nil)
		}
	}, nil
}
