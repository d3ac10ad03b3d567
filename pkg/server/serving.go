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

// Limits of a client's requests, enforced before they are parsed.
const (
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	idleTimeout       = 120 * time.Second
	// The number of idle connections to kcp that are kept, for concurrent requests.
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
		// OPTIONS * passes the middleware like every other request.
		DisableGeneralOptionsHandler: true,

		ErrorLog: zap.NewStdLog(log.From(ctx).Named("http").WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
		// The context is not ctx, because open requests outlive the signal during the drain.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
}

// serve serves until ctx ends and then drains: it accepts no new connections, waits for open
// requests up to the drain timeout, and cuts streams.
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

// proxyTransport is the transport to kcp for proxied requests. It has kcp's CA and no credential,
// because proxied requests carry the caller's own. It uses the proxy of the kubeconfig, as the
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
		// The Accept-Encoding of the client is forwarded.
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
