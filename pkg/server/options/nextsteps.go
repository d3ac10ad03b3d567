package options

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// PrintNextSteps prints where a hub that is ready can be reached, and what to do next.
func (c Config) PrintNextSteps(out io.Writer) {
	ca := cmp.Or(c.TLSCAFile, filepath.Join(c.DataDir, "tls", "ca.crt"))
	portal := ""
	if c.Portal {
		portal = fmt.Sprintf("\nIn a browser, which must trust the CA: %s/ui/\n", c.ExternalURL)
	}
	fmt.Fprintf(out, `
kedge-hub is ready.

  URL  %s
  CA   %s
%s`, c.ExternalURL, ca, portal)
	person, flag := "a person who logs in with "+c.OIDC.IssuerURL, ""
	switch {
	case c.Issuer == nil && c.TokenFile == "":
		fmt.Fprint(out, "\n"+nobodyLogsIn+"\n\n")
		return
	case c.Issuer == nil:
		person, flag = "a person with a token of "+c.TokenFile, " --token-file FILE"
	}
	if text := c.nobodySignsUp(); text != "" {
		fmt.Fprint(out, "\n"+text+"\n")
	}
	fmt.Fprintf(out, `
Next steps, as %s:

  kedge login --server %s --ca-file %s%s
  kedge orgs create "My organization"
  kedge workspaces create "My workspace"
  kedge kubeconfig > kubeconfig
  kubectl --kubeconfig kubeconfig get namespaces

`, person, c.ExternalURL, ca, flag)
}

const nobodyLogsIn = `Nobody can log in: the hub has no identity provider and no token file. Start it with
--oidc-issuer-url and --oidc-client-id, or with --token-file.`

// nobodySignsUp is what to do where nobody could let the first person in, or empty.
func (c Config) nobodySignsUp() string {
	if len(c.AdminUsers)+len(c.AdminGroups) > 0 {
		return ""
	}
	switch c.Registration {
	case httpmw.RegistrationApproval:
		return "People who sign up wait for a platform admin (--registration=approval), and there is none. " + nameAdmin
	case httpmw.RegistrationClosed:
		return "Only people with an invitation can sign up (--registration=closed), and there is no platform admin. " + nameAdmin
	}
	return ""
}

// nameAdmin says how to name the first platform admin.
const nameAdmin = `Start the hub with
--admin-user: a username of the token file, or {issuer}#{subject}, which the page of a refused login shows.
Platform admins are approved whatever --registration says.`
