package options

import (
	"cmp"
	"fmt"
	"net/netip"
	"runtime"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// LimitOptions are the flags of the limits of clients. Rates are per second and allow bursts of
// ten seconds' worth. 0 disables a limit. kedge_limited_total counts what each one refuses.
type LimitOptions struct {
	// TrustedProxyCIDRs (--trusted-proxy-cidr) are the networks of the reverse proxies whose
	// X-Forwarded-For is believed. Default none: the client is the peer of the connection.
	TrustedProxyCIDRs []string
	// MaxConnections (--max-connections) is the number of open connections. Default 10000.
	MaxConnections int
	// MaxConnectionsPerPeer (--max-connections-per-peer) is the number of open connections of
	// an IPv4 address or an IPv6 /64 that is not a trusted proxy. Default 1000.
	MaxConnectionsPerPeer int
	// MaxStreamsPerConnection (--http2-max-streams-per-connection) is the number of requests
	// that an HTTP/2 connection can have open. Default 100.
	MaxStreamsPerConnection int
	// MaxStreams (--max-streams) is the number of open watches, followed logs and upgraded
	// connections. Default 10000.
	MaxStreams int
	// MaxStreamsPerPerson (--max-streams-per-person) is the number of those of one person.
	// Default 256.
	MaxStreamsPerPerson int
	// MaxRequestsInFlight (--max-requests-in-flight) is the number of requests in Workspaces that kcp has at the
	// same time, except those that MaxStreams counts. With those it bounds the connections to kcp.
	// Default 1024.
	MaxRequestsInFlight int
	// MaxRequestsInFlightPerPerson (--max-requests-in-flight-per-person) is the number of requests of one
	// person or bot that are served at the same time, except those that MaxStreamsPerPerson counts. Eight times as
	// many wait for up to 30 seconds; this holds for writes, too. Default 64.
	MaxRequestsInFlightPerPerson int
	// MaxWritesInFlightPerPerson (--max-writes-in-flight-per-person) is the number of requests to the API
	// that may change something, of one person or bot, that are served at the same time. Default 8.
	MaxWritesInFlightPerPerson int
	// MaxRequestsInFlightPerWorkspace (--max-requests-in-flight-per-workspace) is the number of requests in a
	// Workspace that kcp has at the same time, except those that MaxStreams counts. A list without a
	// limit counts for as many as it has pages of 500 objects. Default 128.
	MaxRequestsInFlightPerWorkspace int
	// MaxBytesInFlight (--max-bytes-in-flight) is the size of the answers of all lists of more than 3 MiB
	// that kcp serves at the same time, as a quantity of Kubernetes. Default 512Mi.
	MaxBytesInFlight string
	// KCPCores (--kcp-cores) is the number of cores of kcp for this replica: an Organization has one list of more than
	// 3 MiB at a time for every two, and two requests of any kind for each. 0 stands for the cores of the hub with an
	// embedded kcp, and for 2 with an external one.
	KCPCores int
	// FailedAuthenticationsPerPeer (--failed-authentications-per-peer) is the rate of requests with an
	// invalid token. Over it a peer gets no token verified that was not valid before. Default 10.
	FailedAuthenticationsPerPeer float64
	// RequestsPerPerson (--requests-per-person) is the rate of requests to the API and to
	// Workspaces. The default is 50000: one machine answers fewer from its caches, so that one
	// person alone never meets it.
	RequestsPerPerson float64
	// WritesPerPerson (--writes-per-person) is the rate of requests that may change something,
	// in the API and in Workspaces. Default 500: as many as etcd takes on an ordinary disk.
	WritesPerPerson float64
	// AdditionsPerPerson (--additions-per-person) is the number of distinct people whom one person can add
	// to Organizations and Workspaces within an hour. People who were added lately are not counted
	// again. Default 1000.
	AdditionsPerPerson int
	// SearchesPerPerson (--searches-per-person) is the rate of searches for people. Default 2.
	SearchesPerPerson float64
	// AuditReadsPerPerson (--audit-reads-per-person) is the rate of requests for the audit log, usage and past access.
	// Default 2.
	AuditReadsPerPerson float64
	// SignUps (--sign-ups) is the rate of new people. Default 20. A person whom the hub knows or
	// refuses does not count.
	SignUps float64
	// SignUpsPerPeer (--sign-ups-per-peer) is the rate of new people from one peer. Default 5.
	SignUpsPerPeer float64
	// InvitationsPerPeer (--invitations-per-peer) is the rate of requests from one peer that present
	// the secret of an invitation. Default 5.
	InvitationsPerPeer float64
	// Logins (--logins) is the rate of codes that are presented to the identity provider, one for
	// each login. Networks have equal shares of it, so that none uses up what others need.
	// Default 500.
	Logins float64
	// LoginsPerPeer (--logins-per-peer) is the rate of requests under /auth from one peer without a
	// genuine secret. A login takes about two. Default 20.
	LoginsPerPeer float64
	// LoginsPerSession (--logins-per-session) is the rate of requests under /auth with a genuine
	// secret of one session or one login: refreshes, logouts, confirmations. Default 5.
	LoginsPerSession float64
	// LoginsPerPerson (--logins-per-person) is the rate of logins of one person. Default 5.
	LoginsPerPerson float64
	// DeviceLogins (--device-logins) is the rate of logins of devices without a browser that
	// begin. Each is an object in kcp until it expires, and nobody has authenticated yet.
	// Networks have equal shares of it. Default 20.
	DeviceLogins float64
	// DeviceLoginsPerPeer (--device-logins-per-peer) is the rate of those of one peer.
	// Default 1.
	DeviceLoginsPerPeer float64

	// bytesInFlight is MaxBytesInFlight in bytes.
	bytesInFlight int64
}

// BytesInFlight returns MaxBytesInFlight in bytes. 0 means no limit.
func (o LimitOptions) BytesInFlight() int64 { return o.bytesInFlight }

// LoginRates returns the rates of the limits under /auth.
func (o LimitOptions) LoginRates() httpmw.LoginRates {
	return httpmw.LoginRates{
		PerPeer: o.LoginsPerPeer, PerSession: o.LoginsPerSession, PerPerson: o.LoginsPerPerson,
		Exchanges: o.Logins, Devices: o.DeviceLogins, DevicesPerPeer: o.DeviceLoginsPerPeer,
	}
}

// externalCores is the number of cores of an external kcp if nobody says how many it has. More large lists at once than
// it has cores for hold up everybody.
const externalCores = 2

// turnsPerCore is the number of requests of an Organization that kcp has at once for each core: one that computes, and one
// that waits for the disk.
const turnsPerCore = 2

// LargeLists returns the number of lists of more than 3 MiB that an Organization has at a time.
func (o LimitOptions) LargeLists(embedded bool) int { return max(o.cores(embedded)/2, 1) }

// Turns returns the number of requests that kcp has of an Organization at a time.
func (o LimitOptions) Turns(embedded bool) int { return turnsPerCore * o.cores(embedded) }

// cores is the number of cores of kcp for this replica.
func (o LimitOptions) cores(embedded bool) int {
	if embedded && o.KCPCores == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return cmp.Or(o.KCPCores, externalCores)
}

func newLimitOptions() LimitOptions {
	return LimitOptions{
		MaxConnections: 10_000, MaxConnectionsPerPeer: 1_000, MaxStreamsPerConnection: 100,
		MaxStreams: 10_000, MaxStreamsPerPerson: 256, MaxRequestsInFlight: 1024, MaxRequestsInFlightPerPerson: 64, MaxWritesInFlightPerPerson: 8,
		MaxRequestsInFlightPerWorkspace: 128, MaxBytesInFlight: "512Mi", AdditionsPerPerson: 1000,
		FailedAuthenticationsPerPeer: 10, RequestsPerPerson: 50_000, WritesPerPerson: 500,
		SearchesPerPerson: 2, AuditReadsPerPerson: 2,
		SignUps: 20, SignUpsPerPeer: 5, InvitationsPerPeer: 5, Logins: 500, LoginsPerPeer: 20, LoginsPerSession: 5, LoginsPerPerson: 5,
		DeviceLogins: 20, DeviceLoginsPerPeer: 1,
	}
}

// lastQuarter is a sentence about a limit of what all share.
const lastQuarter = "The last quarter is for organizations with less than a sixteenth of it, those of one creator together. "

const rateUsage = " per second, with bursts of ten seconds' worth. 0 disables the limit."

// addFlags defines the flags in fs.
func (o *LimitOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.TrustedProxyCIDRs, "trusted-proxy-cidr", o.TrustedProxyCIDRs, "Network of reverse proxies, such as 10.0.0.0/8, whose X-Forwarded-For names the client. Can be repeated. Without it the client is the peer of the connection.")
	fs.IntVar(&o.MaxConnections, "max-connections", o.MaxConnections, "Maximum number of open connections. 0 disables the limit.")
	fs.IntVar(&o.MaxConnectionsPerPeer, "max-connections-per-peer", o.MaxConnectionsPerPeer, "Maximum number of open connections of one IPv4 address or IPv6 /64. Trusted proxies are exempt. 0 disables the limit.")
	fs.IntVar(&o.MaxStreamsPerConnection, "http2-max-streams-per-connection", o.MaxStreamsPerConnection, "Maximum number of open requests of one HTTP/2 connection.")
	fs.IntVar(&o.MaxStreams, "max-streams", o.MaxStreams,
		"Maximum number of open watches, followed logs and upgraded connections. "+lastQuarter+"0 disables the limit.")
	fs.IntVar(&o.MaxStreamsPerPerson, "max-streams-per-person", o.MaxStreamsPerPerson, "Maximum number of open watches, followed logs and upgraded connections of one person. 0 disables the limit.")
	fs.IntVar(&o.MaxRequestsInFlight, "max-requests-in-flight", o.MaxRequestsInFlight,
		"Maximum number of requests in workspaces that kcp serves at the same time, "+
			"except watches, followed logs and upgraded connections. Each has a connection to kcp. "+lastQuarter+
			"Those that wait, for up to 10 seconds, are sent for one organization after the other. 0 disables the limit.")
	fs.IntVar(&o.MaxRequestsInFlightPerPerson, "max-requests-in-flight-per-person", o.MaxRequestsInFlightPerPerson, "Maximum number of requests of one person or bot that are served at the same time, except watches, followed logs and upgraded connections. Eight times as many wait for up to 30 seconds. 0 disables the limit.")
	fs.IntVar(&o.MaxWritesInFlightPerPerson, "max-writes-in-flight-per-person", o.MaxWritesInFlightPerPerson, "Maximum number of requests of one person or bot to the API that may change something and are served at the same time. Eight times as many wait for up to 30 seconds. 0 disables the limit.")
	fs.IntVar(&o.MaxRequestsInFlightPerWorkspace, "max-requests-in-flight-per-workspace", o.MaxRequestsInFlightPerWorkspace,
		"Maximum number of requests in one workspace that kcp serves at the same time, except watches, followed logs and "+
			"upgraded connections. A list without a limit counts for as many as it has pages of 500 objects, and so does a watch "+
			"until it has sent what exists. Eight times as many wait for up to 10 seconds. Changes of one object by one person or "+
			"bot are sent one after the other, and an organization has two small requests at kcp for each of --kcp-cores, or a "+
			"large one, until kcp begins to answer, or for a second. 0 disables the limits.")
	fs.StringVar(&o.MaxBytesInFlight, "max-bytes-in-flight", o.MaxBytesInFlight, "Maximum size of the answers of all lists in "+
		"workspaces that kcp serves at the same time, such as 512Mi, and of what watches begin with. A list counts for all that "+
		"its workspace stores, or for its limit, and each byte of a definition, or of a body in YAML, for 64; those below 3 MiB do "+
		"not count, and one that gets larger than the hub knew waits in the middle. What is beyond 3 MiB comes at 32 MiB/s. "+
		"One organization and one person have at most a "+
		"quarter each, one such list at a time for every two of --kcp-cores, and all organizations of one creator "+
		"three quarters. What has no room waits for up to 10 seconds. 0 disables the limits.")
	fs.IntVar(&o.KCPCores, "kcp-cores", o.KCPCores, "Number of cores of kcp, divided by the number of replicas, for "+
		"--max-bytes-in-flight and --max-requests-in-flight-per-workspace: more large lists, writes of roles, or requests of one "+
		"organization, at once than it has cores for hold up everybody. "+
		"0 stands for the cores of the hub with an embedded kcp, and for 2 with an external one.")
	fs.Float64Var(&o.FailedAuthenticationsPerPeer, "failed-authentications-per-peer", o.FailedAuthenticationsPerPeer,
		"Maximum rate of requests with an invalid token from one peer. "+
			"Above it only tokens that the hub handed out or that were valid before are accepted from that peer. Requests"+rateUsage)
	fs.Float64Var(&o.RequestsPerPerson, "requests-per-person", o.RequestsPerPerson, "Maximum rate of requests of one person. Requests"+rateUsage)
	fs.Float64Var(&o.WritesPerPerson, "writes-per-person", o.WritesPerPerson, "Maximum rate of requests of one person that may change something. Requests"+rateUsage)
	fs.IntVar(&o.AdditionsPerPerson, "additions-per-person", o.AdditionsPerPerson, "Maximum number of distinct people whom one person can add to organizations and workspaces within an hour, at once or one by one. 0 disables the limit.")
	fs.Float64Var(&o.SearchesPerPerson, "searches-per-person", o.SearchesPerPerson, "Maximum rate of searches for people of one person. Searches"+rateUsage)
	fs.Float64Var(&o.AuditReadsPerPerson, "audit-reads-per-person", o.AuditReadsPerPerson, "Maximum rate of requests of one person for the audit log, usage and past access. Requests"+rateUsage)
	fs.Float64Var(&o.SignUps, "sign-ups", o.SignUps, "Maximum rate of people who sign up. Those whom the hub knows or refuses do not count. People"+rateUsage)
	fs.Float64Var(&o.SignUpsPerPeer, "sign-ups-per-peer", o.SignUpsPerPeer, "Maximum rate of people who sign up from one peer. People"+rateUsage)
	fs.Float64Var(&o.InvitationsPerPeer, "invitations-per-peer", o.InvitationsPerPeer, "Maximum rate of requests from one peer that present the secret of an invitation. Requests"+rateUsage)
	fs.Float64Var(&o.Logins, "logins", o.Logins, "Maximum rate of logins that ask the identity provider. Networks have equal shares. Logins"+rateUsage)
	fs.Float64Var(&o.LoginsPerPeer, "logins-per-peer", o.LoginsPerPeer, "Maximum rate of requests under /auth from one peer without a secret that the hub has made. Requests"+rateUsage)
	fs.Float64Var(&o.LoginsPerSession, "logins-per-session", o.LoginsPerSession, "Maximum rate of requests under /auth with a secret of one session or one login. Requests"+rateUsage)
	fs.Float64Var(&o.LoginsPerPerson, "logins-per-person", o.LoginsPerPerson, "Maximum rate of logins of one person. Logins"+rateUsage)
	fs.Float64Var(&o.DeviceLogins, "device-logins", o.DeviceLogins, "Maximum rate of logins that begin with a device code. Networks have equal shares. Logins"+rateUsage)
	fs.Float64Var(&o.DeviceLoginsPerPeer, "device-logins-per-peer", o.DeviceLoginsPerPeer, "Maximum rate of logins that begin with a device code from one peer. Logins"+rateUsage)
}

// complete validates the options and returns the networks of the trusted proxies.
func (o *LimitOptions) complete(fail func(flag, format string, args ...any)) httpmw.TrustedProxies {
	for flag, n := range map[string]int{
		"max-connections": o.MaxConnections, "max-connections-per-peer": o.MaxConnectionsPerPeer,
		"max-streams": o.MaxStreams, "max-streams-per-person": o.MaxStreamsPerPerson,
		"max-requests-in-flight": o.MaxRequestsInFlight, "max-requests-in-flight-per-person": o.MaxRequestsInFlightPerPerson, "max-writes-in-flight-per-person": o.MaxWritesInFlightPerPerson,
		"max-requests-in-flight-per-workspace": o.MaxRequestsInFlightPerWorkspace, "additions-per-person": o.AdditionsPerPerson,
	} {
		if n < 0 {
			fail(flag, "%d is negative; give a number, or 0 for no limit", n)
		}
	}
	if o.KCPCores < 0 {
		fail("kcp-cores", "%d is negative; give the number of cores of kcp, or 0", o.KCPCores)
	}
	parseSize(fail, "max-bytes-in-flight", o.MaxBytesInFlight, &o.bytesInFlight)
	if o.MaxStreamsPerConnection < 1 || o.MaxStreamsPerConnection > maxHTTP2Streams {
		fail("http2-max-streams-per-connection", "%d is not between 1 and %d", o.MaxStreamsPerConnection, maxHTTP2Streams)
	}
	for flag, n := range map[string]float64{
		"failed-authentications-per-peer": o.FailedAuthenticationsPerPeer,
		"requests-per-person":             o.RequestsPerPerson, "writes-per-person": o.WritesPerPerson,
		"searches-per-person": o.SearchesPerPerson, "audit-reads-per-person": o.AuditReadsPerPerson,
		"sign-ups": o.SignUps, "sign-ups-per-peer": o.SignUpsPerPeer, "invitations-per-peer": o.InvitationsPerPeer, "logins": o.Logins, "logins-per-peer": o.LoginsPerPeer,
		"logins-per-session": o.LoginsPerSession, "logins-per-person": o.LoginsPerPerson,
		"device-logins": o.DeviceLogins, "device-logins-per-peer": o.DeviceLoginsPerPeer,
	} {
		// The comparison is also false for NaN.
		if !(n == 0 || n >= minRate && n <= maxRate) {
			fail(flag, "%v is not between %v and %v per second; 0 means no limit", n, minRate, float64(maxRate))
		}
	}
	var trusted httpmw.TrustedProxies
	for _, cidr := range o.TrustedProxyCIDRs {
		p, err := parseNetwork(cidr)
		if err != nil {
			fail("trusted-proxy-cidr", "%v", err)
			continue
		}
		trusted = append(trusted, p)
	}
	return trusted
}

const (
	// maxHTTP2Streams is the largest number of streams that the hub lets be configured.
	maxHTTP2Streams = 10_000
	// minRate and maxRate are the smallest and the largest rates per second.
	minRate, maxRate = 0.001, 1e6
)

// parseNetwork parses a network in CIDR notation. One that contains every address is refused: any
// client could then invent its address.
func parseNetwork(cidr string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(cidr)
	switch {
	case err != nil || p != p.Masked() || p.Addr().Is4In6():
		return p, fmt.Errorf("%q is not a network in CIDR notation, such as 10.0.0.0/8", cidr)
	case p.Bits() == 0:
		return p, fmt.Errorf("%q trusts every client; name the networks of your proxies", cidr)
	}
	return p, nil
}

// ConnectionLimits returns the limits of connections on the public listener.
func (c Config) ConnectionLimits() httpmw.ConnectionLimits {
	return httpmw.ConnectionLimits{All: c.Limits.MaxConnections, PerPeer: c.Limits.MaxConnectionsPerPeer, Trusted: c.TrustedProxies}
}
