package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
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
