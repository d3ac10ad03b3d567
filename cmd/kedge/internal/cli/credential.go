package cli

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
)

func (a *app) credentialCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "credential",
		Short: "Print a credential for kubectl (run by kubectl itself)",
		Long: `Print an ExecCredential for the workspace that kubectl names in
$KUBERNETES_EXEC_INFO. Kubeconfigs of a hub run this command; people need not.
It never opens a browser.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := a.Getenv("KUBERNETES_EXEC_INFO")
			if info == "" {
				return errors.New("KUBERNETES_EXEC_INFO is not set: this command is for kubectl, which sets it")
			}
			var question clientauthenticationv1.ExecCredential
			if err := json.Unmarshal([]byte(info), &question); err != nil || question.Kind != "ExecCredential" {
				return errors.New("KUBERNETES_EXEC_INFO is not an ExecCredential")
			}
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			if err := checkCluster(s.login, question.Spec.Cluster, a.Clock.Now()); err != nil {
				return err
			}
			ask := func() ([]byte, error) { return s.api.Credential(cmd.Context(), question) }
			if s.login.Bot != "" {
				ask = func() ([]byte, error) { return s.botCredential(question) }
			}
			raw, err := ask()
			if err != nil {
				return err
			}
			_, err = a.Out.Write(raw)
			return err
		},
	}
}

// checkCluster refuses a cluster entry of a kubeconfig with which kubectl could give the token to
// somebody else than the hub. The hub itself refuses an entry that names another server.
func checkCluster(login *config.Profile, c *clientauthenticationv1.Cluster, now time.Time) error {
	if c == nil {
		// The hub says what is missing.
		return nil
	}
	wrong := ""
	switch hub, err := url.Parse(login.Server); {
	case err != nil:
		return err
	case c.InsecureSkipTLSVerify:
		wrong = "has insecure-skip-tls-verify"
	case c.ProxyURL != "":
		wrong = "has a proxy-url"
	case c.TLSServerName != "" && c.TLSServerName != hub.Hostname():
		wrong = "has a tls-server-name that is not the hub's"
	case len(c.CertificateAuthorityData) == 0 && len(login.CA) > 0:
		wrong = "has no CA, but the login has one"
	case !trusted(login.CA, c.CertificateAuthorityData, now):
		wrong = "has a CA that the login does not trust"
	}
	if wrong == "" {
		return nil
	}
	return fmt.Errorf("the cluster in the kubeconfig %s, so kubectl gets no token; make a new kubeconfig with: kedge kubeconfig", wrong)
}

// trusted reports whether a login with the PEM bundle ca, or with the system's roots if that is
// empty, trusts each certificate of another bundle.
func trusted(ca, bundle []byte, now time.Time) bool {
	if bytes.Equal(ca, bundle) {
		return true
	}
	options := x509.VerifyOptions{CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	if len(ca) > 0 {
		options.Roots = x509.NewCertPool()
		options.Roots.AppendCertsFromPEM(ca)
	}
	found := false
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return found
		}
		// Clients ignore other blocks.
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return false
		}
		if _, err := certificate.Verify(options); err != nil {
			return false
		}
		found = true
	}
}
