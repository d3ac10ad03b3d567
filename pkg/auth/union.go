package auth

import "context"

// Union asks authenticators in turn. The first that knows the token decides; an
// error of one of them is the answer only where no other knows it.
type Union []Authenticator

// Authenticate implements Authenticator.
func (u Union) Authenticate(ctx context.Context, token string) (*Identity, bool, error) {
	var failure error
	for _, a := range u {
		id, ok, err := a.Authenticate(ctx, token)
		if ok && err == nil {
			return id, true, nil
		}
		if err != nil && failure == nil {
			failure = err
		}
	}
	return nil, false, failure
}
