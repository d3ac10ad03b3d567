package options

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// AddressOptions say where the hub serves, and where clients reach it.
type AddressOptions struct {
	// ListenAddress (--listen-address) is the address and port that serve HTTPS. Default
	// 127.0.0.1:9443.
	ListenAddress string
	// ExternalURL (--external-url) is the https URL that clients use; it is written to
	// kubeconfigs. Default https://{ListenAddress}.
	ExternalURL string
	// MetricsListenAddress (--metrics-listen-address) is the address and port that serve
	// /metrics and the details of /readyz over HTTP, without authentication. Empty disables
	// it. Default 127.0.0.1:9464.
	MetricsListenAddress string
}

func (a *AddressOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.ListenAddress, "listen-address", a.ListenAddress, "Address and port on which the hub serves HTTPS.")
	fs.StringVar(&a.ExternalURL, "external-url", a.ExternalURL,
		"The https URL that clients use to reach the hub. It is written to kubeconfigs. Default: https://{listen-address}.")
	fs.StringVar(&a.MetricsListenAddress, "metrics-listen-address", a.MetricsListenAddress,
		"Address and port on which /metrics and the details of /readyz are served over HTTP, "+
			"without authentication. Empty disables it.")
}

// complete validates the addresses, and derives the URL of clients where none is given.
func (a *AddressOptions) complete(serves bool, fail func(flag, format string, args ...any)) {
	host, port, err := net.SplitHostPort(a.ListenAddress)
	if err != nil || !validPort(port, false) {
		fail("listen-address", "%q is not address:port, such as 127.0.0.1:9443", a.ListenAddress)
	}
	if a.ExternalURL == "" {
		if ip := net.ParseIP(host); serves && (host == "" || ip != nil && ip.IsUnspecified()) {
			fail("external-url", "is required if --listen-address covers all addresses of the machine")
		}
		a.ExternalURL = "https://" + net.JoinHostPort(host, port)
	}
	if u, err := url.Parse(a.ExternalURL); err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		fail("external-url", "%q is not an https URL without a path, such as https://hub.example.com", a.ExternalURL)
	}
	a.ExternalURL = strings.TrimSuffix(a.ExternalURL, "/")
	if a.MetricsListenAddress != "" {
		if _, port, err := net.SplitHostPort(a.MetricsListenAddress); err != nil || !validPort(port, true) {
			fail("metrics-listen-address", "%q is not address:port, such as 127.0.0.1:9464", a.MetricsListenAddress)
		}
	}
}

func validPort(port string, zero bool) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && (n > 0 || zero)
}
