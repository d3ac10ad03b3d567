package check

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/server/options"
)

// checkTimeout bounds each check.
const checkTimeout = 15 * time.Second

// errChecks says that a check failed. What is wrong was printed.
var errChecks = errors.New("the hub cannot serve with this configuration")

// Run checks what a hub with the configuration needs, without starting one: the files of its
// flags, kcp, the identity providers and the databases. It prints one line for each check, in the form of
// /readyz?verbose.
func Run(ctx context.Context, c options.Config, out io.Writer) error {
	failed := false
	for _, check := range []struct {
		name string
		// why is empty if the check does not apply.
		why string
		run func(context.Context) error
	}{
		{"data-dir", "", func(context.Context) error { return checkDataDir(c) }},
		{"serving-certificate", unless(c.TLSCertFile != "", "the hub makes its own"), func(context.Context) error { return checkCertificate(c, time.Now()) }},
		{"token-file", unless(c.TokenFile != "", "no --token-file"), func(context.Context) error {
			_, err := auth.LoadStaticTokens(c.TokenFile)
			return flagged("--token-file", err)
		}},
		{"audit-log", unless(c.AuditLogFile != audit.Stdout, "events go to no file"), func(context.Context) error { return checkAuditLog(c) }},
		{"kcp", unless(!c.Embedded, "it is embedded and starts with the hub"), func(ctx context.Context) error { return checkKCP(ctx, c) }},
		{"oidc", unless(c.Issuer != nil, "no --oidc-issuer-url"), func(ctx context.Context) error { return checkIssuer(ctx, c) }},
		{"ci", unless(len(c.CI.Issuers) > 0, "no --ci-issuer"), func(ctx context.Context) error { return checkJobIssuers(ctx, c) }},
		{"records", unless(c.Records.Database != records.None, "no --database"), func(ctx context.Context) error {
			return checkRecords(ctx, c)
		}},
		{"billing-table", unless(c.Billing.TableName != "", "no --billing-table"), func(ctx context.Context) error { return checkBillingTable(ctx, c) }},
	} {
		if check.why != "" {
			fmt.Fprintf(out, "[ ]%s not checked: %s\n", check.name, check.why)
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		err := check.run(ctx)
		cancel()
		if err != nil {
			failed = true
			fmt.Fprintf(out, "[-]%s failed: %v\n", check.name, err)
			continue
		}
		fmt.Fprintf(out, "[+]%s ok\n", check.name)
	}
	if failed {
		return errChecks
	}
	return nil
}

func unless(applies bool, why string) string {
	if applies {
		return ""
	}
	return why
}

func flagged(flag string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// checkDataDir checks that the directory can be written.
func checkDataDir(c options.Config) error { return flagged("--data-dir", writable(c.DataDir)) }

// writable checks that a directory, or the nearest one above it that exists, can be written.
func writable(dir string) error {
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s is not a directory", dir)
		case err == nil && unix.Access(dir, unix.W_OK|unix.X_OK) != nil:
			return fmt.Errorf("%s cannot be written; give it to the user of the hub, or name another directory", dir)
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir):
			return err
		}
		dir = filepath.Dir(dir)
	}
}

// checkAuditLog checks that the file can be written and, unless it is a device, renamed.
func checkAuditLog(c options.Config) error {
	file := c.AuditLogFile
	if _, err := os.Stat(filepath.Dir(file)); errors.Is(err, os.ErrNotExist) && file == audit.DefaultFile(c.DataDir) {
		// The hub makes the directory.
		return nil
	}
	info, err := os.Stat(file)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("--audit-log-file: %s is a directory; name a file", file)
	case err == nil && unix.Access(file, unix.W_OK) != nil:
		return fmt.Errorf("--audit-log-file: %s cannot be written; give it to the user of the hub, or name another file", file)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return flagged("--audit-log-file", err)
	case err == nil && !info.Mode().IsRegular():
		return nil
	}
	if dir := filepath.Dir(file); unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		return fmt.Errorf("--audit-log-file: %s cannot be written, so no file in it can be rotated; give it to the user of the hub, or name another one", dir)
	}
	return nil
}

// checkRecords checks that the database of the records answers and takes rows. The hub makes a file that is not there.
func checkRecords(ctx context.Context, c options.Config) error {
	o := c.Records.Records()
	if file, ok := o.File(); ok && !records.Exists(o) {
		return flagged("--database", writable(filepath.Dir(file)))
	}
	db, err := records.Open(o)
	if err != nil {
		return flagged("--database", err)
	}
	defer func() { _ = db.Close() }()
	return flagged("--database", db.Check(ctx))
}

// checkBillingTable checks that the table takes rows.
func checkBillingTable(ctx context.Context, c options.Config) error {
	database, table, _ := c.Billing.Table()
	target, err := records.OpenBillingTarget(database, table)
	if err != nil {
		return flagged("--billing-database", err)
	}
	defer func() { _ = target.Close() }()
	return flagged("--billing-table", target.Check(ctx))
}

// checkCertificate checks the certificate as a client does.
func checkCertificate(c options.Config, now time.Time) error {
	bundle, err := certs.Load(c.TLSCertFile, c.TLSKeyFile, c.TLSCAFile)
	if err != nil {
		return err
	}
	external, err := url.Parse(c.ExternalURL)
	if err != nil {
		return flagged("--external-url", err)
	}
	roots, chain := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle.CAPEM)
	for _, der := range bundle.Certificate.Certificate[1:] {
		if link, err := x509.ParseCertificate(der); err == nil {
			chain.AddCert(link)
		}
	}
	_, err = bundle.Certificate.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: chain, DNSName: external.Hostname(), CurrentTime: now})
	if err != nil {
		return fmt.Errorf("clients that trust --tls-ca-file and open --external-url refuse --tls-cert-file: %w", err)
	}
	return nil
}

// checkKCP asks kcp whether it is ready, and whether it knows the hub's credential.
func checkKCP(ctx context.Context, c options.Config) error {
	clients, err := connect.Clients(ctx, c.KCP())
	if err != nil {
		return err
	}
	defer clients.Close()
	client, host := clients.HTTP()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/readyz", http.NoBody)
	if err != nil {
		return flagged("--kcp-kubeconfig", err)
	}
	answer, err := client.Do(r)
	if err == nil {
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("kcp at %s is not ready: its /readyz answers %s", host, answer.Status)
		}
		_, err = clients.Username(ctx, kcp.RootCluster)
	}
	if clients.Transport().Refused() != nil {
		return errors.New("--kcp-kubeconfig: kcp refuses its credential; name the admin.kubeconfig of this kcp")
	}
	if err != nil {
		return fmt.Errorf("--kcp-kubeconfig: ask kcp at %s: %w", host, err)
	}
	return nil
}

// checkIssuer fetches the discovery document and the keys of the issuer.
func checkIssuer(ctx context.Context, c options.Config) error {
	config := *c.Issuer
	config.Clock = c.Clock
	return reach(ctx, config, "--oidc-issuer-url", "--oidc-ca-file")
}

// checkJobIssuers fetches the discovery documents and the keys of the issuers of jobs.
func checkJobIssuers(ctx context.Context, c options.Config) error {
	all := make([]error, len(c.CI.Issuers))
	for i, issuer := range c.CI.Issuers {
		all[i] = reach(ctx, auth.OIDCConfig{IssuerURL: issuer, CA: c.CI.Certificates, Clock: c.Clock}, "--ci-issuer", "--ci-ca-file")
	}
	return errors.Join(all...)
}

// reach fetches the discovery document and the keys of an issuer that two flags configure.
func reach(ctx context.Context, config auth.OIDCConfig, urlFlag, caFlag string) error {
	config.Metrics = prometheus.NewRegistry()
	issuer, err := auth.NewOIDC(config)
	if err != nil {
		return flagged(caFlag, err)
	}
	if err := issuer.Reach(ctx); err != nil {
		return fmt.Errorf("%s: %w; correct %s, or %s if its certificate is refused", config.IssuerURL, err, urlFlag, caFlag)
	}
	return nil
}
