package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// loadTime is the duration of a single load.
const loadTime = 3 * time.Second

// measurement is the result of a load.
type measurement struct {
	perSecond float64
	p50, p99  time.Duration
}

// load sends the request repeatedly over a number of connections for the duration.
func load(client *http.Client, url string, header http.Header, connections int, lasting time.Duration) (measurement, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lasting)
	defer cancel()
	var mu sync.Mutex
	var all []time.Duration
	var failure error
	var running sync.WaitGroup
	for range connections {
		running.Go(func() {
			var took []time.Duration
			for ctx.Err() == nil {
				began := time.Now()
				err := once(client, url, header)
				took = append(took, time.Since(began))
				if err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
					return
				}
			}
			mu.Lock()
			all = append(all, took...)
			mu.Unlock()
		})
	}
	running.Wait()
	if failure != nil {
		return measurement{}, failure
	}
	slices.Sort(all)
	return measurement{float64(len(all)) / lasting.Seconds(), all[len(all)/2], all[len(all)*99/100]}, nil
}

func once(client *http.Client, url string, header http.Header) error {
	r, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	r.Header = header
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}

// clientFor returns a client that trusts a CA and keeps as many connections as a load needs.
// It uses HTTP/1.1, so that requests do not share connections.
func clientFor(ca []byte) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 128,
	}}
}

// kcpOf returns the admin's client of the kcp behind a hub.
func kcpOf(h *hubProcess) (*rest.Config, []byte, error) {
	return adminOf(h.dir + "/kcp/admin.kubeconfig")
}

// adminOf returns the client configuration of kcp's admin, and kcp's CA.
func adminOf(kubeconfig string) (*rest.Config, []byte, error) {
	raw, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, "base", nil, nil).ClientConfig()
	if err != nil {
		return nil, nil, err
	}
	return config, config.CAData, nil
}

func caOf(h *hubProcess) ([]byte, error) { return os.ReadFile(h.CA) }
