package tenancy

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// The limits of a CatalogEntry, as in its schema.
const (
	maxDescription     = 4096
	maxEntryVersion    = 64
	maxMemberResources = 64
	maxResourceName    = 317
	maxURL             = 2048
	maxExportPath      = 512
	maxExportName      = 253
)

var (
	slugPattern     = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	pathPattern     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	resourcePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// CheckCatalogSpec refuses a spec of a CatalogEntry that is not valid, and names the field.
// privateBackends permits addresses of private networks in backend.url.
func CheckCatalogSpec(spec v1alpha1.CatalogEntrySpec, privateBackends bool) error {
	if err := CheckDisplayName("displayName", spec.DisplayName); err != nil {
		return err
	}
	ref := spec.APIExport
	switch {
	case !slugPattern.MatchString(spec.Slug):
		return errs.InvalidField("slug", "must be 1 to 63 lower-case letters, digits and hyphens, and begin with no hyphen")
	case !isText(spec.Description, maxDescription):
		return errs.InvalidField("description", "must be text of at most 4096 characters")
	case !isText(spec.Version, maxEntryVersion) || strings.ContainsAny(spec.Version, "\n\t"):
		return errs.InvalidField("version", "must be one line of at most 64 characters")
	case len(ref.Path) > maxExportPath || !pathPattern.MatchString(ref.Path):
		return errs.InvalidField("apiExport.path", "must be the absolute path of a workspace, such as root:kedge:providers:example")
	case len(ref.Name) > maxExportName || !resourcePattern.MatchString(ref.Name):
		return errs.InvalidField("apiExport.name", "must be the name of an APIExport")
	case len(spec.MemberResources) > maxMemberResources:
		return errs.InvalidField("memberResources", "must have at most 64 items")
	}
	for i, r := range spec.MemberResources {
		if len(r) > maxResourceName || !resourcePattern.MatchString(r) || slices.Contains(spec.MemberResources[:i], r) {
			return errs.InvalidField("memberResources", "must list each resource once, as widgets or widgets.example.org")
		}
	}
	if spec.UI != nil && spec.UI.IconURL != "" {
		if err := checkIcon("ui.iconURL", spec.UI.IconURL); err != nil {
			return err
		}
	}
	if spec.Backend != nil {
		return CheckBackendURL("backend.url", spec.Backend.URL, privateBackends)
	}
	return nil
}

// isText reports whether s is text in NFC without control characters but line feeds and tabs.
func isText(s string, longest int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= longest && norm.NFC.IsNormalString(s) &&
		strings.IndexFunc(s, func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
		}) < 0
}

// CheckCatalogLocked refuses a change of the fields of a CatalogEntry that are immutable.
func CheckCatalogLocked(held, wanted v1alpha1.CatalogEntrySpec) error {
	var causes []errs.Cause
	lock := func(field string, same bool) {
		if !same {
			causes = append(causes, errs.Cause{Type: "FieldValueForbidden", Field: field, Message: "cannot be changed; delete the entry and publish another one"})
		}
	}
	lock("slug", held.Slug == wanted.Slug)
	lock("apiExport.path", held.APIExport.Path == wanted.APIExport.Path)
	lock("apiExport.name", held.APIExport.Name == wanted.APIExport.Name)
	lock("backend.url", backendURL(held) == backendURL(wanted))
	if len(causes) == 0 {
		return nil
	}
	return errs.New(errs.Unprocessable, causes[0].Field+": "+causes[0].Message, causes...)
}

func backendURL(spec v1alpha1.CatalogEntrySpec) string {
	if spec.Backend == nil {
		return ""
	}
	return spec.Backend.URL
}

// CheckBackendURL refuses a URL that is not https, and one with a port or an address that the hub
// does not connect to. It does not resolve names: the addresses that a name has are
// checked when the hub dials it.
func CheckBackendURL(field, raw string, private bool) error {
	u, err := httpsURL(field, raw)
	if err != nil {
		return err
	}
	if port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16); err != nil || !backendPort(uint16(port)) {
		return errs.UnprocessableField(field, "must have the port 443, or one from 1024 to 65535")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && CheckBackendAddress(addr, private):
		return nil
	case err == nil, last == "localhost" && !private:
		return errs.UnprocessableField(field, "is not an address that the hub connects to; name a server with a public address")
	case isNumber(last):
		// Some resolvers read 127.1 and 0x7f000001 as addresses.
		return errs.UnprocessableField(field, "has a host that is neither a name nor an IP address")
	}
	return nil
}

// backendPort reports whether the hub connects to a port for a CatalogEntry. Other ports below
// 1024 belong to services that are no web servers.
func backendPort(port uint16) bool { return port == 443 || port >= 1024 }

// isNumber reports whether a label of a host is a number, in any notation.
func isNumber(label string) bool {
	if _, err := strconv.ParseUint(label, 0, 64); err == nil {
		return true
	}
	return label != "" && strings.Trim(label, "0123456789") == "" || label == "0x"
}

func httpsURL(field, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || len(raw) > maxURL || u.Scheme != "https" || !strings.HasPrefix(raw, "https://") || u.Hostname() == "" || strings.Contains(u.Host, "%") {
		return nil, errs.UnprocessableField(field, "must be a URL that begins with https://, of at most 2048 characters")
	}
	if u.User != nil || u.Fragment != "" {
		return nil, errs.UnprocessableField(field, "must have no user, no password and no fragment")
	}
	return u, nil
}

// refusedNetworks are the networks that the hub connects to for nobody: this host, link-local
// addresses, the metadata services of clouds at other addresses, multicast and reserved ones.
func refusedNetworks() []netip.Prefix {
	return prefixes("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "::/128", "fe80::/10", "ff00::/8",
		"fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")
}

// privateNetworks are those that only --allow-private-backends permits: loopback, private and
// shared addresses, and those for documentation and benchmarks.
func privateNetworks() []netip.Prefix {
	return prefixes("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24",
		"192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "192.88.99.0/24",
		"::1/128", "fc00::/7", "fec0::/10", "64:ff9b:1::/48", "2001::/23", "2001:db8::/32", "100::/64")
}

func prefixes(all ...string) (parsed []netip.Prefix) {
	for _, p := range all {
		parsed = append(parsed, netip.MustParsePrefix(p))
	}
	return parsed
}

// CheckBackendAddress reports whether the hub may connect to an address for a CatalogEntry. An
// IPv6 address that stands for an IPv4 address counts as that one.
func CheckBackendAddress(addr netip.Addr, private bool) bool {
	addr = embedded(addr.WithZone("").Unmap())
	in := func(p netip.Prefix) bool { return p.Contains(addr) }
	return addr.IsValid() && !slices.ContainsFunc(refusedNetworks(), in) && (private || !slices.ContainsFunc(privateNetworks(), in))
}

// CheckBackendTarget reports whether the hub may connect to an address and port for a CatalogEntry.
// own are the addresses and ports of the hub itself and of its identity provider. Of those all ports
// are refused, except on loopback, where other programs listen, too.
func CheckBackendTarget(to netip.AddrPort, own []netip.AddrPort, private bool) bool {
	plain := func(a netip.Addr) netip.Addr { return embedded(a.WithZone("").Unmap()) }
	addr := plain(to.Addr())
	return backendPort(to.Port()) && CheckBackendAddress(addr, private) && !slices.ContainsFunc(own, func(o netip.AddrPort) bool {
		return plain(o.Addr()) == addr && (!addr.IsLoopback() || o.Port() == to.Port())
	})
}

// embedded returns the IPv4 address in an IPv6 address of NAT64, SIIT, 6to4 or the deprecated
// IPv4-compatible form; any other address as it is.
func embedded(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	four := func(at int) netip.Addr { return netip.AddrFrom4([4]byte(b[at : at+4])) }
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(addr), netip.MustParsePrefix("::ffff:0:0:0/96").Contains(addr):
		return four(12)
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		return four(2)
	case netip.MustParsePrefix("::/96").Contains(addr) && b[12] != 0:
		return four(12)
	}
	return addr
}
