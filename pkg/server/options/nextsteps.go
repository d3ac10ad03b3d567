package options

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
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
%s
Next steps, as a person with a token:

  kedge login --server %s --ca-file %s --token-file FILE
  kedge orgs create "My organization"
  kedge workspaces create "My workspace"
  kedge kubeconfig > kubeconfig
  kubectl --kubeconfig kubeconfig get namespaces

`, c.ExternalURL, ca, portal, c.ExternalURL, ca)
}
