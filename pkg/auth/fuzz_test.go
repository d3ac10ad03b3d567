package auth_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
)

// FuzzIDToken looks for a token that panics, that is accepted although its signed part is not one
// that the issuer has signed, or that has another Credential than the token it derives from.
func FuzzIDToken(f *testing.F) {
	k := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	p := oidctest.New(f, oidctest.Options{Clock: k})
	o, err := auth.NewOIDC(auth.OIDCConfig{
		IssuerURL: p.URL(), ClientID: oidctest.ClientID, CA: p.CA(), UsernameClaim: "sub", UsernamePrefix: "kedge:", GroupsClaim: "groups",
		Clock: k, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); o.Run(ctx) }()
	f.Cleanup(func() { cancel(); <-done })
	require.Eventually(f, func() bool { return o.Err() == nil }, 10*time.Second, time.Millisecond)

	rightful := p.Token(nil)
	parts := strings.Split(rightful, ".")
	id, ok, err := o.Authenticate(ctx, rightful)
	require.NoError(f, err)
	require.True(f, ok)
	for _, seed := range []string{
		rightful, "", "..", "a.b.c", parts[0] + "." + parts[1] + ".", "." + parts[1] + "." + parts[2], rightful + "A", rightful + "=",
		"eyJhbGciOiJub25lIn0." + parts[1] + ".", "eyJhbGciOiJIUzI1NiJ9." + parts[1] + "." + parts[2],
		p.Token(oidctest.Claims{"aud": []string{"a", "kedge"}}), p.Token(oidctest.Claims{"exp": -1}), p.Token(oidctest.Claims{"groups": map[string]any{}}),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		// The issuer's tokens have a port that every process chooses anew, so mutations begin
		// with today's too.
		for _, candidate := range []string{token, splice(parts, token)} {
			got, ok, err := o.Authenticate(ctx, candidate)
			if err != nil {
				require.Contains(t, []errs.Code{errs.Unauthenticated, errs.Unavailable, errs.Forbidden}, errs.CodeOf(err))
				require.False(t, ok)
			}
			if ok {
				require.True(t, strings.HasPrefix(candidate, parts[0]+"."+parts[1]+"."), candidate)
				require.Equal(t, id.Credential, got.Credential)
			}
		}
	})
}

// splice puts the input in place of one part of a rightful token, which its length chooses.
func splice(parts []string, input string) string {
	spliced := []string{parts[0], parts[1], parts[2]}
	spliced[len(input)%3] = input
	return strings.Join(spliced, ".")
}
