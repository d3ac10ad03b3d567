package transport_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// strict is a kcp that accepts one token, or one client certificate, at a time.
type strict struct {
	*fakeKCP
	file    string
	takes   atomic.Value
	refused atomic.Int64
	logs    *observer.ObservedLogs
}

func newStrict(t *testing.T) *strict {
	t.Helper()
	s := &strict{fakeKCP: newKCP(t, true, nil, nil), file: filepath.Join(t.TempDir(), "kubeconfig")}
	answer := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.Header.Get("Authorization")
		if len(r.TLS.PeerCertificates) > 0 {
			who += string(r.TLS.PeerCertificates[0].Raw)
		}
		if who != s.takes.Load() {
			s.refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer.ServeHTTP(w, r)
	})
	s.TLS.ClientAuth = tls.RequestClientCert
	return s
}

// take makes kcp accept this token only.
func (s *strict) take(token string) { s.takes.Store("Bearer " + token) }

// kubeconfig is one for the user.
func (s *strict) kubeconfig(user clientcmdapi.AuthInfo) clientcmdapi.Config {
	return clientcmdapi.Config{
		CurrentContext: "base",
		Contexts:       map[string]*clientcmdapi.Context{"base": {Cluster: "base", AuthInfo: "admin"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"base": {Server: s.URL, CertificateAuthorityData: s.config().CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": &user},
	}
}

func (s *strict) write(t *testing.T, user clientcmdapi.AuthInfo) {
	t.Helper()
	require.NoError(t, clientcmd.WriteToFile(s.kubeconfig(user), s.file))
}

// follow returns clients with the credential of the file and keeps its log.
func (s *strict) follow(t *testing.T) *kcp.Clients {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	s.logs = logs
	config, err := transport.Follow(log.Into(t.Context(), zap.New(core)), "the test's kubeconfig", func() (*rest.Config, error) {
		raw, err := clientcmd.LoadFromFile(s.file)
		if err != nil {
			return nil, err
		}
		return clientcmd.NewNonInteractiveClientConfig(*raw, "", nil, nil).ClientConfig()
	})
	require.NoError(t, err)
	require.NotContains(t, config.String(), "old")
	return newClients(t, config)
}

// refuses requires that a write is refused with what a caller can be told, and
// with the reason for the log.
func refuses(t *testing.T, clients *kcp.Clients, ctx context.Context) { //nolint:revive // t comes first everywhere
	t.Helper()
	err := writes[http.MethodPost](ctx, clients)
	var told *errs.Error
	require.ErrorAs(t, err, &told)
	require.Equal(t, errs.Unavailable, told.Code)
	require.Positive(t, told.RetryAfter)
	var refusal *transport.Refusal
	require.ErrorAs(t, err, &refusal)
	require.EqualError(t, refusal, "kcp refuses the credential of the test's kubeconfig")
}

func TestFollow_retriesARefusedRequestWithTheNewToken(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]func(t *testing.T, token string) clientcmdapi.AuthInfo{
		"in it": func(_ *testing.T, token string) clientcmdapi.AuthInfo { return clientcmdapi.AuthInfo{Token: token} },
		"in a file that it names": func(t *testing.T, token string) clientcmdapi.AuthInfo {
			file := filepath.Join(t.TempDir(), "token")
			require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
			return clientcmdapi.AuthInfo{TokenFile: file}
		},
	} {
		for method, write := range writes {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				s := newStrict(t)
				s.take("old")
				s.write(t, user(t, "old"))
				clients := s.follow(t)
				ctx, logs := t.Context(), s.logs
				require.NoError(t, write(ctx, clients))
				require.Zero(t, s.refused.Load())

				s.take("new")
				s.write(t, user(t, "new"))
				require.NoError(t, write(ctx, clients))
				require.EqualValues(t, 1, s.refused.Load(), "it was sent once more")
				require.NoError(t, write(ctx, clients.FailFast()))
				require.NoError(t, write(ctx, clients.Fenced(func() (time.Time, error) { return time.Time{}, nil })))
				require.EqualValues(t, 1, s.refused.Load())
				require.Equal(t, 1, logs.Len())
				require.Equal(t, "read a new token for kcp", logs.All()[0].Message)
			})
		}
	}
}

func TestFollow_sendsNoBodyTwiceThatCannotBeRewound(t *testing.T) {
	t.Parallel()
	s := newStrict(t)
	s.take("old")
	s.write(t, clientcmdapi.AuthInfo{Token: "old"})
	client, base := s.follow(t).HTTP()
	s.take("new")
	s.write(t, clientcmdapi.AuthInfo{Token: "new"})
	send := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base, io.NopCloser(strings.NewReader("{}")))
		require.NoError(t, err)
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	var refusal *transport.Refusal
	require.ErrorAs(t, send(), &refusal)
	require.NoError(t, send(), "the next one has the new credential")
}

func TestFollow_keepsTheTokenUntilThereIsANewOne(t *testing.T) {
	t.Parallel()
	whole := func(s *strict) string {
		raw, err := clientcmd.Write(s.kubeconfig(clientcmdapi.AuthInfo{Token: "new"}))
		require.NoError(t, err)
		return string(raw)
	}
	for name, damage := range map[string]func(t *testing.T, s *strict){
		"the file is empty": func(t *testing.T, s *strict) { require.NoError(t, os.WriteFile(s.file, nil, 0o600)) },
		"half of the file is written": func(t *testing.T, s *strict) {
			require.NoError(t, os.WriteFile(s.file, []byte(whole(s)[:len(whole(s))/2]), 0o600))
		},
		"the file is not there":       func(t *testing.T, s *strict) { require.NoError(t, os.Remove(s.file)) },
		"nobody is in the file":       func(t *testing.T, s *strict) { s.write(t, clientcmdapi.AuthInfo{}) },
		"the token's file is missing": func(t *testing.T, s *strict) { s.write(t, clientcmdapi.AuthInfo{TokenFile: "/nowhere"}) },
		"half a certificate is there": func(t *testing.T, s *strict) {
			s.write(t, clientcmdapi.AuthInfo{ClientCertificateData: []byte("half"), ClientKeyData: []byte("half")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStrict(t)
			s.take("old")
			s.write(t, clientcmdapi.AuthInfo{Token: "old"})
			clients := s.follow(t)
			ctx, logs := t.Context(), s.logs
			require.NoError(t, writes[http.MethodPost](ctx, clients))

			damage(t, s)
			s.take("new")
			refuses(t, clients, ctx)
			refuses(t, clients, ctx)
			require.Equal(t, 1, logs.Len(), "it is told once")
			require.Contains(t, logs.All()[0].Message, "kcp refuses the hub's credential")
			s.take("old")
			require.NoError(t, writes[http.MethodPost](ctx, clients), "it is the one that there was")
			s.take("new")
			s.write(t, clientcmdapi.AuthInfo{Token: "new"})
			require.Eventually(t, func() bool { return writes[http.MethodPost](ctx, clients) == nil }, long, 10*time.Millisecond)
			require.Equal(t, 2, logs.Len())
			tellsNoToken(t, logs)
		})
	}
}

func tellsNoToken(t *testing.T, logs *observer.ObservedLogs) {
	t.Helper()
	for _, entry := range logs.All() {
		require.NotRegexp(t, `\b(old|new)\b`, fmt.Sprint(entry.ContextMap()))
	}
}

func TestFollow_showsNoTokenToAnotherServer(t *testing.T) {
	t.Parallel()
	s, other := newStrict(t), newStrict(t)
	s.take("old")
	other.take("new")
	s.write(t, clientcmdapi.AuthInfo{Token: "old"})
	clients := s.follow(t)
	require.NoError(t, writes[http.MethodPost](t.Context(), clients))

	s.take("new")
	require.NoError(t, clientcmd.WriteToFile(other.kubeconfig(clientcmdapi.AuthInfo{Token: "new"}), s.file))
	ctx, logs := t.Context(), s.logs
	refuses(t, clients, ctx)
	require.Empty(t, other.methods())
	require.Zero(t, other.refused.Load())
	require.Equal(t, 1, logs.Len())
	require.Contains(t, logs.All()[0].Message, "names another server; restart the hub")
	tellsNoToken(t, logs)
}

// aCertificate returns a client certificate and its key.
func aCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin"}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// A connection that was made with a client certificate authenticates all that is sent on
// it, whatever token that has.
func TestCertificate_authenticatesNoOtherClients(t *testing.T) {
	t.Parallel()
	s := newStrict(t)
	certificate, key := aCertificate(t)
	block, _ := pem.Decode(certificate)
	s.write(t, clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
	clients := s.follow(t)
	byToken, err := clients.As(&rest.Config{BearerToken: "other"})
	require.NoError(t, err)
	s.takes.Store(string(block.Bytes))
	require.NoError(t, writes[http.MethodPost](t.Context(), clients), "the control")
	require.Error(t, writes[http.MethodPost](t.Context(), byToken))
	s.take("other")
	require.NoError(t, writes[http.MethodPost](t.Context(), byToken), "it has its token, and no certificate")
	require.Error(t, writes[http.MethodPost](t.Context(), clients))

	config := s.config()
	config.CertData, config.KeyData = certificate, key
	byCertificate, err := byToken.As(config)
	require.NoError(t, err)
	s.takes.Store(string(block.Bytes))
	require.NoError(t, writes[http.MethodPost](t.Context(), byCertificate))
	require.Error(t, writes[http.MethodPost](t.Context(), byToken))
}

func TestFollow_readsTheSourceSeldom(t *testing.T) {
	t.Parallel()
	s := newStrict(t)
	s.take("old")
	var reads atomic.Int64
	config, err := transport.Follow(t.Context(), "the test's kubeconfig", func() (*rest.Config, error) {
		reads.Add(1)
		config := s.config()
		config.BearerToken = "old"
		return config, nil
	})
	require.NoError(t, err)
	clients := newClients(t, config)
	many := func(check func(error)) {
		var sending sync.WaitGroup
		for range 8 {
			sending.Go(func() {
				for range 20 {
					check(writes[http.MethodPost](t.Context(), clients))
				}
			})
		}
		sending.Wait()
	}
	many(func(err error) { assert.NoError(t, err) })
	require.EqualValues(t, 1, reads.Load())
	s.take("new")
	began := time.Now()
	many(func(err error) { assert.Error(t, err) })
	require.LessOrEqual(t, reads.Load(), 2+int64(time.Since(began)/time.Second))
}

func TestProbe_notesARefusedCredential(t *testing.T) {
	t.Parallel()
	s := newStrict(t)
	s.take("old")
	s.write(t, clientcmdapi.AuthInfo{Token: "old"})
	clients := s.follow(t)
	p := probing(t, clients)
	recovered(t, p)
	require.NoError(t, clients.Transport().Refused())
	s.take("new")
	lost(t, p)
	require.EqualError(t, clients.Transport().Refused(), "kcp refuses the credential of the test's kubeconfig")
	s.write(t, clientcmdapi.AuthInfo{Token: "new"})
	recovered(t, p)
	require.NoError(t, clients.Transport().Refused())
	s.CloseClientConnections()
	require.NoError(t, s.Listener.Close())
	lost(t, p)
	require.NoError(t, clients.Transport().Refused(), "an unavailable kcp refuses nothing")
}
