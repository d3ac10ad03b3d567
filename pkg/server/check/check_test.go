package check_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/server/check"
	"github.com/faroshq/kedge-hub/pkg/server/options"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
)

// What /readyz calls records and ci is known before a start, too.
func TestCheck_asksTheRecordsAndTheIssuersOfJobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	idp := oidctest.New(t, oidctest.Options{})
	ca := file("ca.crt", string(idp.CA()))
	for name, c := range map[string]struct {
		change func(*options.Options)
		ok     bool
		want   string
	}{
		"no file yet": {func(*options.Options) {}, true, "[+]records ok"},
		"none":        {func(o *options.Options) { o.Records.Database = "none" }, true, "[ ]records not checked: no --database"},
		"a file": {func(o *options.Options) {
			o.Records.Database = "sqlite:" + file("records.db", "")
		}, true, "[+]records ok"},
		"a file of something else": {func(o *options.Options) {
			o.Records.Database = "sqlite:" + file("other.db", strings.Repeat("This is no database. ", 100))
		}, false, "[-]records failed: --database: "},
		"a file below a file": {func(o *options.Options) {
			o.Records.Database = "sqlite:" + file("plain", "") + "/records.db"
		}, false, "[-]records failed: --database: "},
		"no server": {func(o *options.Options) {
			o.Records.Database = "postgres://kedge:hush@127.0.0.1:1/records"
		}, false, "[-]records failed: --database: "},
		"no issuers of jobs": {func(*options.Options) {}, true, "[ ]ci not checked: no --ci-issuer"},
		"an issuer of jobs":  {func(o *options.Options) { o.CI.Issuers, o.CI.CAFile = []string{idp.URL()}, ca }, true, "[+]ci ok"},
		"a CA of its own":    {func(o *options.Options) { o.CI.Issuers = []string{idp.URL()} }, false, "or --ci-ca-file if its"},
		"one of two is none": {func(o *options.Options) {
			o.CI.Issuers, o.CI.CAFile = []string{idp.URL(), idp.URL() + "/nowhere"}, ca
		}, false, "[-]ci failed: " + idp.URL() + "/nowhere: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := options.New()
			o.DataDir = filepath.Join(dir, "data")
			c.change(o)
			config, err := o.Complete()
			require.NoError(t, err)
			out := &strings.Builder{}
			err = check.Run(t.Context(), config, out)
			require.Contains(t, out.String(), c.want)
			require.NotContains(t, out.String(), "hush")
			require.Equal(t, c.ok, err == nil, "%s", out)
		})
	}
	require.NoDirExists(t, filepath.Join(dir, "data"), "a check makes nothing")
}

// kcpAnswering returns a kubeconfig for a server that answers as kcp does.
func kcpAnswering(t *testing.T, ready int, token string) string {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","code":401,"reason":"Unauthorized"}`))
		case r.URL.Path == "/readyz":
			w.WriteHeader(ready)
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"kcp-admin"}}}`))
		}
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "admin.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "root",
		Contexts:       map[string]*clientcmdapi.Context{"root": {Cluster: "root", AuthInfo: "admin"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"root": {Server: s.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {Token: "hush"}},
	}, file))
	return file
}

func TestCheck_saysWhatIsWrongAndWhichFlagMendsIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	_, err := certs.Ensure(dir, []string{"hub.example.com"}, time.Now())
	require.NoError(t, err)
	_, err = certs.Ensure(filepath.Join(dir, "other"), []string{"hub.example.com"}, time.Now())
	require.NoError(t, err)
	own := func(o *options.Options, ca string) {
		o.TLSCertFile, o.TLSKeyFile, o.TLSCAFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, ca)
	}
	idp := oidctest.New(t, oidctest.Options{})
	issuer := func(o *options.Options, url string) {
		o.OIDC.IssuerURL, o.OIDC.ClientID, o.OIDC.CAFile = url, "kedge", write("issuer-ca", string(idp.CA()))
	}
	for name, c := range map[string]struct {
		change func(*options.Options)
		ok     bool
		want   string
	}{
		"defaults": {func(*options.Options) {}, true, "[ ]kcp not checked: it is embedded"},
		"no billing table": {func(o *options.Options) {
			o.Billing.TableName, o.Billing.Database = "hours", "postgres://kedge:hush@127.0.0.1:1/finance"
		}, false, "[-]billing-table failed: --billing-table: "},
		"no directory":        {func(o *options.Options) { o.DataDir = write("file", "") + "/below" }, false, "[-]data-dir failed: --data-dir: "},
		"tokens":              {func(o *options.Options) { o.TokenFile = write("tokens", "hush,alice,1") }, true, "[+]token-file ok"},
		"bad tokens":          {func(o *options.Options) { o.TokenFile = write("bad-tokens", "hush,alice") }, false, "[-]token-file failed: --token-file: "},
		"audit log":           {func(o *options.Options) { o.AuditLogFile = filepath.Join(dir, "audit.log") }, true, "[+]audit-log ok"},
		"audit device":        {func(o *options.Options) { o.AuditLogFile = "/dev/full" }, true, "[+]audit-log ok"},
		"no audit log":        {func(o *options.Options) { o.AuditLogFile = "-" }, true, "[ ]audit-log not checked"},
		"audit folder":        {func(o *options.Options) { o.AuditLogFile = dir }, false, "[-]audit-log failed: --audit-log-file: "},
		"no audit folder":     {func(o *options.Options) { o.AuditLogFile = filepath.Join(dir, "none", "audit.log") }, false, "so no file in it can be rotated"},
		"certificate":         {func(o *options.Options) { own(o, "ca.crt"); o.ExternalURL = "https://hub.example.com" }, true, "[+]serving-certificate ok"},
		"another host":        {func(o *options.Options) { own(o, "ca.crt"); o.ExternalURL = "https://other.example.com" }, false, "open --external-url refuse --tls-cert-file"},
		"another CA":          {func(o *options.Options) { own(o, "other/ca.crt"); o.ExternalURL = "https://hub.example.com" }, false, "that trust --tls-ca-file"},
		"kcp":                 {func(o *options.Options) { o.KCPKubeconfig = kcpAnswering(t, 200, "hush") }, true, "[+]kcp ok"},
		"kcp is not ready":    {func(o *options.Options) { o.KCPKubeconfig = kcpAnswering(t, 500, "hush") }, false, "is not ready: its /readyz answers 500"},
		"kcp refuses":         {func(o *options.Options) { o.KCPKubeconfig = kcpAnswering(t, 200, "other") }, false, "[-]kcp failed: --kcp-kubeconfig: "},
		"issuer":              {func(o *options.Options) { issuer(o, idp.URL()) }, true, "[+]oidc ok"},
		"issuer with no CA":   {func(o *options.Options) { issuer(o, idp.URL()); o.OIDC.CAFile = "" }, false, "or --oidc-ca-file"},
		"issuer is no issuer": {func(o *options.Options) { issuer(o, idp.URL()+"/nowhere") }, false, "correct --oidc-issuer-url"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options.New()
			o.DataDir = filepath.Join(dir, "data")
			c.change(o)
			config, err := o.Complete()
			require.NoError(t, err)
			out := &strings.Builder{}
			err = check.Run(t.Context(), config, out)
			require.Contains(t, out.String(), c.want)
			require.NotContains(t, out.String(), "hush")
			require.Equal(t, c.ok, err == nil, "%s", out)
			require.Equal(t, !c.ok, strings.Contains(out.String(), "[-]"))
		})
	}
	require.NoDirExists(t, filepath.Join(dir, "data"), "a check makes nothing")
	require.NoFileExists(t, filepath.Join(dir, "audit.log"))
}
