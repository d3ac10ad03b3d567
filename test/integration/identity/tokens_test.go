package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

func whoIs(token string) call {
	return call{Token: token, Method: http.MethodGet, Path: "/api/users/me"}
}

// claims returns the claims of an ID token, unverified.
func claims(t *testing.T, token string) map[string]any {
	t.Helper()
	return segment(t, token, 1)
}

func segment(t *testing.T, token string, i int) (out map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	raw, err := base64.RawURLEncoding.DecodeString(parts[i])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

func encoded(t *testing.T, v map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// ready waits until the hub has the keys of its issuer and kcp accepts the person's token.
func ready(t *testing.T, hub *framework.Hub, token string) framework.Answer {
	t.Helper()
	var a framework.Answer
	framework.Eventually(t, framework.Long, func() (err error) {
		if a, err = hub.Try(whoIs(token)); err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("%d %s", a.Code, a.Raw)
		}
		return err
	})
	return a
}

// A person signs up with an ID token of Dex and works in a Workspace with kubectl: kcp derives
// the same username from the same token. A static user of the same name is another person.
func TestIDToken_worksAtTheHubAndInKCP(t *testing.T) {
	t.Parallel()
	hub := kcp.SharedWithDex(t, dex, 1)[0]
	token := dex.IDToken(t, framework.HubClient, "alice")
	me := ready(t, hub, token)
	framework.SignUp(t, hub, "alice")
	users, alices := kcp.Platform(t, hub.Options.RootWorkspace).AllUsers(t), 0
	u := users[me.Text("name")]
	require.Equal(t, dex.Issuer, u.Spec.Issuer)
	require.Equal(t, claims(t, token)["sub"], u.Spec.Subject)
	require.Equal(t, "kedge:"+u.Spec.Subject, u.Spec.RBACIdentity)
	for _, other := range users {
		if other.Spec.Subject == u.Spec.Subject || other.Spec.Subject == "alice" {
			alices++
		}
	}
	require.Equal(t, 2, alices, "the static alice is somebody else")

	body := map[string]string{"displayName": "ACME"}
	org := hub.Made(t, call{Token: token, Method: http.MethodPost, Path: "/api/orgs", Body: body}).Text("uuid")
	made := hub.Made(t, call{Token: token, Method: http.MethodPost, Path: "/api/orgs/" + org + "/workspaces", Org: org, Body: body})
	kubectl := func(token string) error {
		_, errOut, err := hub.KubectlWith(t, token, made.Text("clusterID"), "get", "namespaces")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, errOut)
		}
		return err
	}
	framework.Eventually(t, framework.Long, func() error { return kubectl(token) })
	// A token that another program fetched for the same person is as good.
	require.NoError(t, kubectl(dex.IDToken(t, framework.OtherClient, "alice")))
	require.ErrorContains(t, kubectl(framework.Token("alice")), "Forbidden")
	require.ErrorContains(t, kubectl(dex.IDToken(t, framework.HubClient, "bob")), "orbidden")
}

// Every kind of bad token is 401 at the REST API and at the proxy, and none is a 5xx.
func TestIDToken_refusesForgeries(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, dex), func(o *server.Options) {
		o.OIDC.ExtraAudiences = nil
		o.Limits.FailedAuthenticationsPerPeer = 0
	})
	good := dex.IDToken(t, framework.HubClient, "alice")
	ready(t, hub, good)
	parts := strings.Split(good, ".")
	header, payload := segment(t, good, 0), segment(t, good, 1)
	with := func(m map[string]any, field string, value any) map[string]any {
		m = maps.Clone(m)
		m[field] = value
		return m
	}
	ours, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	signed := func(header, payload map[string]any) string {
		text := encoded(t, header) + "." + encoded(t, payload)
		sum := sha256.Sum256([]byte(text))
		signature, err := rsa.SignPKCS1v15(rand.Reader, ours, 5, sum[:])
		require.NoError(t, err)
		return text + "." + base64.RawURLEncoding.EncodeToString(signature)
	}
	hmacWith := func(key []byte) string {
		text := encoded(t, with(header, "alg", "HS256")) + "." + parts[1]
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	public := publicKey(t)
	flipped := []byte(parts[2])
	flipped[10] ^= 1
	embedded, err := (&jose.JSONWebKey{Key: ours.Public(), KeyID: fmt.Sprint(header["kid"]), Algorithm: "RS256"}).MarshalJSON()
	require.NoError(t, err)

	for name, bad := range map[string]string{
		"no signature, alg none":            encoded(t, with(header, "alg", "none")) + "." + parts[1] + ".",
		"alg none with a signature":         encoded(t, with(header, "alg", "none")) + "." + parts[1] + "." + parts[2],
		"no algorithm":                      encoded(t, map[string]any{"kid": header["kid"]}) + "." + parts[1] + "." + parts[2],
		"HMAC with the public key as DER":   hmacWith(public),
		"HMAC with the public key as PEM":   hmacWith(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		"HMAC with nothing":                 hmacWith(nil),
		"another key under the known kid":   signed(header, payload),
		"another key that the token brings": signed(with(header, "jwk", json.RawMessage(embedded)), payload),
		"other claims, the old signature":   parts[0] + "." + encoded(t, with(payload, "sub", "somebody")) + "." + parts[2],
		"a later expiry, the old signature": parts[0] + "." + encoded(t, with(payload, "exp", time.Now().Add(time.Hour).Unix())) + "." + parts[2],
		"a changed signature":               parts[0] + "." + parts[1] + "." + string(flipped),
		"another client's token":            dex.IDToken(t, framework.OtherClient, "alice"),
		"another issuer's token":            hasty.IDToken(t, framework.HubClient, "alice"),
		"claims that are no JSON":           parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte("{")) + "." + parts[2],
		"a fourth part":                     good + ".x",
		"a million dots":                    strings.Repeat(".", 15_000),
		"dots and nothing":                  "..",
		"a token with a line of itself":     good + "%0a" + good,
	} {
		for _, path := range []string{"/api/users/me", "/clusters/root/api/v1/namespaces"} {
			a, err := hub.Try(call{Token: bad, Method: http.MethodGet, Path: path})
			require.NoError(t, err, name)
			require.Equal(t, http.StatusUnauthorized, a.Code, "%s: %s", name, a.Raw)
			require.Equal(t, "Bearer", a.Header.Get("WWW-Authenticate"), name)
			require.NotContains(t, string(a.Raw), parts[2], name)
		}
	}
	// Headers of this size end in net/http.
	for _, size := range []int{100_000, 10_000_000} {
		a, err := hub.Try(whoIs(strings.Repeat("a", size)))
		if err == nil {
			require.GreaterOrEqual(t, a.Code, 400)
			require.Less(t, a.Code, 500)
		}
	}
	hub.Do(t, whoIs(good), http.StatusOK)
	require.NotContains(t, hub.Log.String(), parts[1], "the log")
}

// publicKey fetches the key that Dex signs with, as DER.
func publicKey(t *testing.T) []byte {
	t.Helper()
	c, err := framework.NewClient(dex.Issuer, dex.CAFile)
	require.NoError(t, err)
	defer c.HTTP.CloseIdleConnections()
	a := c.Do(t, call{Method: http.MethodGet, Path: "/keys"}, http.StatusOK)
	var set struct {
		Keys []struct{ N, E string }
	}
	require.NoError(t, json.Unmarshal(a.Raw, &set))
	number := func(s string) *big.Int {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		require.NoError(t, err)
		return new(big.Int).SetBytes(raw)
	}
	der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: number(set.Keys[0].N), E: int(number(set.Keys[0].E).Int64())})
	require.NoError(t, err)
	return der
}

// A token that has expired is 401, and a watch that was opened with it ends at that moment.
func TestIDToken_endsAtItsExpiry(t *testing.T) {
	t.Parallel()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, hasty))
	ready(t, hub, hasty.IDToken(t, framework.HubClient, "bob"))
	token := hasty.IDToken(t, framework.HubClient, "bob")
	body := map[string]string{"displayName": "ACME"}
	org := hub.Made(t, call{Token: token, Method: http.MethodPost, Path: "/api/orgs", Body: body}).Text("uuid")
	token = hasty.IDToken(t, framework.HubClient, "bob")
	cluster := hub.Made(t, call{Token: token, Method: http.MethodPost, Path: "/api/orgs/" + org + "/workspaces", Org: org, Body: body}).Text("clusterID")

	token = hasty.IDToken(t, framework.HubClient, "bob")
	expiry := time.Unix(int64(claims(t, token)["exp"].(float64)), 0)
	watch := openWatch(t, hub, token, cluster)
	require.True(t, expiry.After(time.Now()), "the watch was opened too late")
	watch.ended(t)
	require.WithinDuration(t, expiry, time.Now(), 1500*time.Millisecond)
	for _, path := range []string{"/api/users/me", "/clusters/" + cluster + "/api/v1/namespaces"} {
		hub.Do(t, call{Token: token, Method: http.MethodGet, Path: path}, http.StatusUnauthorized)
	}
	hub.Do(t, whoIs(hasty.IDToken(t, framework.HubClient, "bob")), http.StatusOK)
}
