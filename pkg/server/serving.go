package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// Limits of what a client may take up, before anything looks at what it says.
const (
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	idleTimeout       = 120 * time.Second
	// Upstream connections are kept for as many requests at once as one machine
	// has clients for.
	upstreamIdle = 512
)

func newHTTPServer(ctx context.Context, handler http.Handler, config *tls.Config) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         config,
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		// OPTIONS * passes what every request passes.
		DisableGeneralOptionsHandler: true,

		ErrorLog: zap.NewStdLog(log.From(ctx).Named("http").WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
		// Not ctx: open requests outlive the signal by as long as the drain takes.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
}

// serve serves until ctx ends and then drains: no new connections, open requests
// for as long as drain, and then streams are cut.
func serve(ctx context.Context, s *http.Server, l net.Listener, drain time.Duration) error {
	failed := make(chan error, 1)
	go func() {
		var err error
		if s.TLSConfig != nil {
			err = s.ServeTLS(l, "", "")
		} else {
			err = s.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return s.Close()
	}
	return nil
}

// proxyTransport goes to kcp with nothing but its CA: what it forwards carries
// the caller's own credential. It goes through what the kubeconfig says, as the
// hub's own requests do.
func proxyTransport(config *tls.Config, through func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:                 through,
		TLSClientConfig:       config,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: 65 * time.Second,
		MaxIdleConnsPerHost:   upstreamIdle,
		IdleConnTimeout:       90 * time.Second,
		// The client's own Accept-Encoding goes through.
		DisableCompression: true,
		WriteBufferSize:    8 << 10,
		ReadBufferSize:     32 << 10,
	}
}

func baseURL(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("the server %q is not an https URL", server)
	}
	path, _, _ := strings.Cut(u.Path, "/clusters/")
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(path, "/")}).String(), nil
}
