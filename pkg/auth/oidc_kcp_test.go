package auth_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	kubeoidc "k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
)

// caContent is a CA bundle, for kube-apiserver's authenticator.
type caContent []byte

func (c caContent) CurrentCABundleContent() []byte { return c }

// The other side is the code with which kcp authenticates.
func TestJWTAuthenticator_derivesTheUsernamesOfTheHub(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t, oidctest.Options{})
	for name, change := range map[string]func(*auth.OIDCConfig){
		"sub":         func(*auth.OIDCConfig) {},
		"email":       func(c *auth.OIDCConfig) { c.UsernameClaim = "email" },
		"odd prefix":  func(c *auth.OIDCConfig) { c.UsernamePrefix = "s" },
		"no groups":   func(c *auth.OIDCConfig) { c.GroupsClaim = "" },
		"an audience": func(c *auth.OIDCConfig) { c.ExtraAudiences = []string{"kubelogin"} },
		"a claim":     func(c *auth.OIDCConfig) { c.RequiredClaims = map[string]string{"hd": "example.com"} },
	} {
		config := auth.OIDCConfig{
			IssuerURL: p.URL(), ClientID: oidctest.ClientID, CA: p.CA(), UsernameClaim: "sub", UsernamePrefix: "kedge:", GroupsClaim: "groups",
			Clock: clock.RealClock{}, Metrics: prometheus.NewRegistry(),
		}
		change(&config)
		hub, err := auth.NewOIDC(config)
		require.NoError(t, err)
		i := &issuer{Provider: p, OIDC: hub}
		i.run(t)

		external, internal := config.JWTAuthenticator(), apiserver.JWTAuthenticator{}
		require.NoError(t, apiserverv1.Convert_v1_JWTAuthenticator_To_apiserver_JWTAuthenticator(&external, &internal, nil))
		kcp, err := kubeoidc.New(t.Context(), kubeoidc.Options{
			JWTAuthenticator: internal, CAContentProvider: caContent(p.CA()), SupportedSigningAlgs: kubeoidc.AllValidSigningAlgorithms(),
		})
		require.NoError(t, err, name)
		eventually(t, func() bool { return kcp.HealthCheck() == nil })

		accepted, refused := 0, 0
		for _, claims := range []oidctest.Claims{
			{}, {"groups": "dev"}, {"groups": []string{"dev", "ops"}}, {"groups": []string{}}, {"aud": "kubelogin"}, {"aud": "other"}, {"hd": "example.com"},
			{"email_verified": false}, {"email_verified": nil}, {"sub": "ystem:admin"}, {"sub": "hard-admin"}, {"sub": "workspace:x"}, {"groups": []string{"ystem:masters"}},
			{"sub": " "}, {"sub": "a "}, {"sub": "\u200balice"},
			{"sub": "alice\ufeff"}, {"sub": "a\u0085b"}, {"email": " "}, {"email": "\u3000a@b.c"},
			{"email": "a@b.c\x00"}, {"email": "a\u200db@b.c"}, {"groups": []string{"workspace:x:sudo"}},
			{"sub": "Ünïcode \u202e#1"}, {"exp": 1}, {"iss": "https://other"},
			{"job_id": "1"}, {"pipeline_id": 2}, {"job_id": "1", "pipeline_id": 2},
			{"job_workflow_ref": "a/b/.github/workflows/c.yml@main"}, {"ci_config_ref_uri": false}, {"job": "1"},
		} {
			token := p.Token(claims)
			id, ok, _ := hub.Authenticate(t.Context(), token)
			answer, kcpOK, _ := kcp.AuthenticateToken(t.Context(), token)
			require.Equal(t, kcpOK, ok, "%s: %v", name, claims)
			if !ok {
				refused++
				continue
			}
			accepted++
			require.Equal(t, answer.User.GetName(), id.Username)
			require.Equal(t, strings.Join(answer.User.GetGroups(), " "), strings.Join(id.Groups, " "))
		}
		require.NotZero(t, accepted, name)
		require.NotZero(t, refused, name)
	}
}
