package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/test/framework"
)

// bareArgument is the argument that starts this program as the floor of REST reads.
const bareArgument = "bare-server"

// bareAnswer is the file with the answer of the floor.
const bareAnswer = "answer"

// served is this program in a process of its own, which serves over TLS: what sends the load
// shares its garbage collector with nothing that is measured.
type served struct {
	*framework.Process
	*framework.Client
	http *http.Client
}

// startServed starts this program with an argument, its directory, its address and more arguments, and
// waits until it answers.
func startServed(argument, dir string, more ...string) (*served, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	port, err := framework.FreePort()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	process, err := framework.StartProcess(program, append([]string{argument, dir, address}, more...)...)
	if err != nil {
		return nil, err
	}
	s := &served{Process: process}
	if err := s.await(dir, address); err != nil {
		process.Kill()
		return nil, err
	}
	return s, nil
}

func (s *served) await(dir, address string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * framework.Long)
	ca := filepath.Join(dir, "tls", "ca.crt")
	for {
		if s.Client == nil {
			s.Client, _ = framework.NewClient("https://"+address, ca)
		} else if a, err := s.Try(framework.Call{Method: http.MethodGet, Path: "/api"}); err == nil && a.Code != 0 {
			pem, err := os.ReadFile(ca)
			s.http = clientFor(pem)
			return err
		}
		select {
		case <-s.Ended():
			return fmt.Errorf("%s ended: %s", dir, s.Output)
		case <-deadline:
			return fmt.Errorf("%s does not serve: %s", dir, s.Output)
		case <-tick.C:
		}
	}
}

// serveOverTLS serves until it fails, with a certificate whose CA startServed finds.
func serveOverTLS(dir, address string, handler http.Handler) error {
	bundle, err := certs.Ensure(filepath.Join(dir, "tls"), []string{"127.0.0.1"}, time.Now())
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{bundle.Certificate}}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, TLSConfig: config}
	return server.ServeTLS(listener, "", "")
}

// startBare starts the floor of REST reads: a chi handler that serves the given bytes under /bare.
func startBare(dir string, body []byte) (*served, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, bareAnswer), body, 0o600); err != nil {
		return nil, err
	}
	return startServed(bareArgument, dir)
}

// serveBare is the program that startBare starts.
func serveBare(dir, address string) error {
	body, err := os.ReadFile(filepath.Join(dir, bareAnswer))
	if err != nil {
		return err
	}
	router := chi.NewRouter()
	router.Get("/bare", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	})
	return serveOverTLS(dir, address, router)
}
