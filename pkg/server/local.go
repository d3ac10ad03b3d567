package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// localSocket is the socket on which a hub answers its operator. A user who can read the files of the hub has
// all of kcp at any rate. It is in a folder of its own, because the mode of a socket is set after it is made.
func localSocket(c Config) string { return filepath.Join(c.DataDir, "run", "hub.sock") }

// serveLocal serves the operator's socket until ctx ends. A hub that cannot serve it serves everybody else.
func (h *hub) serveLocal(ctx context.Context, servers *errgroup.Group, handler http.Handler) {
	path := localSocket(h.config)
	listener, err := listenLocal(ctx, path)
	if err != nil {
		log.From(ctx).Warn("no socket for kedge-hub verify, backup and restore --release", zap.String("path", path), zap.Error(err))
		return
	}
	server := h.newHTTPServer(ctx, handler, nil)
	// A look and a backup take as long as their askers want, and end with the hub.
	server.ReadTimeout = 0
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	servers.Go(func() error { return serve(ctx, server, listener, time.Second) })
}

// local answers the operator's socket.
func (a *assembly) local() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+verifyPath, func(w http.ResponseWriter, r *http.Request) { a.verify(w, r, false) })
	mux.HandleFunc("POST "+verifyPath, func(w http.ResponseWriter, r *http.Request) { a.verify(w, r, true) })
	mux.HandleFunc("GET "+headsPath, a.heads)
	mux.HandleFunc("POST "+releasePath, a.hub.purges.release)
	if a.backups != nil {
		mux.HandleFunc("POST "+backupPath, a.backups.serve)
		mux.HandleFunc("POST "+storedPath, a.backups.wasStored)
	}
	return mux
}

// listenLocal opens a socket that only this user can use. One that a killed hub left is replaced.
func listenLocal(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(filepath.Dir(path), 0o700); err != nil { //nolint:gosec // a folder needs x to be entered
		return nil, err
	}
	if c, err := dialLocal(ctx, path); err == nil {
		_ = c.Close()
		return nil, errors.New("another hub uses it")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func dialLocal(ctx context.Context, path string) (net.Conn, error) {
	return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
}

// localClient sends requests to the hub of a socket. It waits for the begin of an answer until timeout.
func localClient(path string, timeout time.Duration) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, ResponseHeaderTimeout: timeout,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialLocal(ctx, path) },
	}}
}

// errNoHub says that no hub serves a socket.
var errNoHub = errors.New("no hub runs with this --data-dir")

// askLocal sends a request to the hub that runs with the data folder. It fails with errNoHub if there is none.
func askLocal(ctx context.Context, path, method, url string, timeout time.Duration) (*http.Response, error) {
	c, err := dialLocal(ctx, path)
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("%s: %w; run this as the user of the hub", path, err)
		}
		return nil, errNoHub
	}
	_ = c.Close()
	r, err := http.NewRequestWithContext(ctx, method, "http://hub"+url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return localClient(path, timeout).Do(r)
}
