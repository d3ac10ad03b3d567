package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/clientcmd"
)

// counter counts the requests of a hub to kcp by verb and resource.
type counter struct {
	mu   sync.Mutex
	by   map[string]int
	last time.Time
}

// countRequests serves the kcp of a kubeconfig to a hub, and writes the kubeconfig for that.
func countRequests(kcp, kubeconfig string) (*counter, error) {
	config, err := clientcmd.LoadFromFile(kcp)
	if err != nil {
		return nil, err
	}
	c := &counter{by: map[string]int{}}
	ca := x509.NewCertPool()
	var target *url.URL
	for _, cluster := range config.Clusters {
		ca.AppendCertsFromPEM(cluster.CertificateAuthorityData)
		if target, err = url.Parse(cluster.Server); err != nil {
			return nil, err
		}
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = ""
		},
		FlushInterval: -1,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.count(r)
		proxy.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	for _, cluster := range config.Clusters {
		at, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, err
		}
		cluster.Server = server.URL + at.Path
		// Watches go to kcp itself, because kcp tells their URLs.
		cluster.CertificateAuthorityData = append(cluster.CertificateAuthorityData, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})...)
	}
	return c, clientcmd.WriteToFile(*config, kubeconfig)
}

// count leaves out watches, what is no resource, and what a hub does at rest.
func (c *counter) count(r *http.Request) {
	inner := r.Clone(r.Context())
	if rest, ok := strings.CutPrefix(r.URL.Path, "/clusters/"); ok {
		_, rest, _ = strings.Cut(rest, "/")
		inner.URL.Path = "/" + rest
	}
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(inner)
	if err != nil || !info.IsResourceRequest || info.Verb == "watch" || info.Resource == "leases" {
		return
	}
	what := info.Verb + " " + info.Resource
	if r.URL.Query().Has("dryRun") {
		what = "try " + info.Resource
	}
	if info.Subresource != "" {
		what += "/" + info.Subresource
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[what]++
	c.last = time.Now()
}

// take returns the requests since the last call.
func (c *counter) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := maps.Clone(c.by)
	clear(c.by)
	return by
}

// quiet waits until the hub has sent nothing for a while.
func (c *counter) quiet() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for time.Since(began) < patience {
		<-tick.C
		c.mu.Lock()
		silent := time.Since(began) > stillness && time.Since(c.last) > stillness
		c.mu.Unlock()
		if silent {
			return
		}
	}
}

// stillness is how long a hub sends nothing to kcp after all that follows from a request.
const stillness = 700 * time.Millisecond
