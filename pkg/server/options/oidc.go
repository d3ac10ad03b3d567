package options

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/auth"
)

// OIDCOptions are the flags of the OpenID Connect issuer of people's ID tokens.
type OIDCOptions struct {
	// IssuerURL (--oidc-issuer-url) is the https URL of the issuer. Empty means that nobody
	// logs in with OIDC.
	IssuerURL string
	// ClientID (--oidc-client-id) is the hub's client at the issuer.
	ClientID string
	// ClientSecretFile (--oidc-client-secret-file) is the file with the secret of the client.
	// Empty means a public client with PKCE.
	ClientSecretFile string
	// CAFile (--oidc-ca-file) is a PEM file with the CA certificates of the issuer. Empty means
	// those of the system.
	CAFile string
	// Scopes (--oidc-scopes) are the scopes of a login. Default
	// openid,profile,email,offline_access.
	Scopes []string
	// ExtraAudiences (--oidc-extra-audience) are accepted in aud beside ClientID.
	ExtraAudiences []string
	// UsernameClaim (--oidc-username-claim) is the claim that makes the username in kcp.
	// Default sub.
	UsernameClaim string
	// UsernamePrefix (--oidc-username-prefix) begins usernames and groups. Default kedge:.
	UsernamePrefix string
	// GroupsClaim (--oidc-groups-claim) is the claim with the groups. Empty means none.
	GroupsClaim string
	// RequiredClaims (--oidc-required-claim) are claims that a token must have, as key=value.
	RequiredClaims []string
}

func newOIDCOptions() OIDCOptions {
	return OIDCOptions{
		Scopes: []string{"openid", "profile", "email", "offline_access"}, UsernameClaim: "sub", UsernamePrefix: "kedge:",
	}
}

func (o *OIDCOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.IssuerURL, "oidc-issuer-url", o.IssuerURL, "The https URL of the OpenID Connect issuer that people log in at. The embedded kcp trusts it too; an external kcp needs the same issuer, audiences, claims and prefix in --authentication-config.")
	fs.StringVar(&o.ClientID, "oidc-client-id", o.ClientID, "Client ID of the hub at the issuer. Its redirect URI is {external-url}/auth/callback.")
	fs.StringVar(&o.ClientSecretFile, "oidc-client-secret-file", o.ClientSecretFile, "File with the secret of --oidc-client-id. Without it the hub is a public client with PKCE.")
	fs.StringVar(&o.CAFile, "oidc-ca-file", o.CAFile, "PEM file with the CA certificates that the issuer's certificate is verified with, instead of those of the system.")
	fs.StringSliceVar(&o.Scopes, "oidc-scopes", o.Scopes, "Scopes that a login asks for. openid is required; offline_access makes most issuers give a refresh token.")
	fs.StringArrayVar(&o.ExtraAudiences, "oidc-extra-audience", o.ExtraAudiences, "Another client ID whose ID tokens are accepted, such as that of kubelogin. Can be repeated.")
	fs.StringVar(&o.UsernameClaim, "oidc-username-claim", o.UsernameClaim, "Claim that, after --oidc-username-prefix, is the username in kcp. With email, the token must have email_verified.")
	fs.StringVar(&o.UsernamePrefix, "oidc-username-prefix", o.UsernamePrefix, "Prefix of usernames and groups of ID tokens, so that they are never equal to others.")
	fs.StringVar(&o.GroupsClaim, "oidc-groups-claim", o.GroupsClaim,
		"Claim with the groups of a person, for --admin-group and --auditor-group, and for the mappings of groups of organizations. Without it groups are ignored.")
	fs.StringArrayVar(&o.RequiredClaims, "oidc-required-claim", o.RequiredClaims, "Claim that an ID token must have, as key=value. Can be repeated.")
}

// complete validates the flags together, and returns nil if there is no issuer.
func (o *OIDCOptions) complete(fail func(flag, format string, args ...any)) *auth.OIDCConfig {
	if o.IssuerURL == "" {
		for flag, given := range map[string]bool{
			"oidc-client-id": o.ClientID != "", "oidc-client-secret-file": o.ClientSecretFile != "", "oidc-ca-file": o.CAFile != "",
			"oidc-extra-audience": len(o.ExtraAudiences) > 0, "oidc-groups-claim": o.GroupsClaim != "", "oidc-required-claim": len(o.RequiredClaims) > 0,
		} {
			if given {
				fail(flag, "needs --oidc-issuer-url")
			}
		}
		return nil
	}
	c := &auth.OIDCConfig{
		IssuerURL: o.IssuerURL, ClientID: o.ClientID, Scopes: o.Scopes, ExtraAudiences: o.ExtraAudiences,
		UsernameClaim: o.UsernameClaim, UsernamePrefix: o.UsernamePrefix, GroupsClaim: o.GroupsClaim, RequiredClaims: map[string]string{},
	}
	if !issuerURL(o.IssuerURL) {
		fail("oidc-issuer-url", "%q is not an https URL without query, such as https://login.example.com", o.IssuerURL)
	}
	if o.ClientID == "" {
		fail("oidc-client-id", "is required with --oidc-issuer-url")
	}
	if !slices.Contains(o.Scopes, "openid") {
		fail("oidc-scopes", "must contain openid")
	}
	if slices.Contains(o.ExtraAudiences, "") || slices.Contains(o.ExtraAudiences, o.ClientID) {
		fail("oidc-extra-audience", "must be a client ID other than --oidc-client-id")
	}
	if o.UsernameClaim == "" {
		fail("oidc-username-claim", "must be the name of a claim")
	}
	// Without a prefix, a person could be called like a user of another source.
	if o.UsernamePrefix == "" || auth.ReservedName(o.UsernamePrefix) {
		fail("oidc-username-prefix", "%q is empty or reserved; give a prefix such as kedge:", o.UsernamePrefix)
	}
	for _, claim := range o.RequiredClaims {
		name, value, ok := strings.Cut(claim, "=")
		if _, twice := c.RequiredClaims[name]; !ok || name == "" || twice {
			fail("oidc-required-claim", "%q is not key=value with a key of its own", claim)
		}
		c.RequiredClaims[name] = value
	}
	if o.CAFile != "" {
		var err error
		if c.CA, err = o.ReadCA(); err != nil {
			fail("oidc-ca-file", "%v", err)
		}
	}
	if o.ClientSecretFile != "" {
		var err error
		if c.ClientSecret, err = o.ReadClientSecret(); err != nil {
			fail("oidc-client-secret-file", "%v", err)
		}
	}
	return c
}

// issuerURL reports whether a text can be the URL of an issuer.
func issuerURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil && len(text) <= 512
}

// ReadCA reads the CA certificates of CAFile.
func (o *OIDCOptions) ReadCA() ([]byte, error) { return readCA(o.CAFile) }

func readCA(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%q is not a readable PEM file with certificates", file)
	}
	return raw, nil
}

// ReadClientSecret reads the secret in ClientSecretFile without the white space around it. Errors
// never contain it.
func (o *OIDCOptions) ReadClientSecret() (string, error) {
	raw, err := os.ReadFile(o.ClientSecretFile)
	secret := strings.TrimSpace(string(raw))
	if err != nil || secret == "" {
		return "", fmt.Errorf("%q is not a readable file with a secret", o.ClientSecretFile)
	}
	return secret, nil
}

// readable fails for a file that cannot be opened.
func readable(flag, file string, fail func(flag, format string, args ...any)) {
	f, err := os.Open(file)
	if err != nil {
		fail(flag, "%v; name a file that the hub can read", err)
		return
	}
	_ = f.Close()
}
