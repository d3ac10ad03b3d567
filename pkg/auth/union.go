package auth

import "context"

// Union asks authenticators in turn and returns the first identity found. If none knows
// the token, it returns the first error, so that a token that could not be verified is not
// reported as unknown.
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
