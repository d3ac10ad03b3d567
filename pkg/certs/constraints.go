package certs

import (
	"crypto/x509"
	"net"
	"slices"
)

// split returns the DNS names and the IP addresses among hosts.
func split(hosts []string) (names []string, addresses []net.IP) {
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			addresses = append(addresses, ip)
		} else {
			names = append(names, host)
		}
	}
	return names, addresses
}

// constrain gives a CA critical name constraints (RFC 5280, 4.2.1.10): it can sign for these hosts
// and the subdomains of the names alone.
func constrain(ca *x509.Certificate, names []string, addresses []net.IP) {
	ca.PermittedDNSDomainsCritical = true
	ca.PermittedDNSDomains = names
	for _, ip := range addresses {
		ca.PermittedIPRanges = append(ca.PermittedIPRanges, single(ip))
	}
	// Without a permitted name of a kind, all of the kind are permitted unless they are excluded.
	if len(names) == 0 {
		ca.ExcludedDNSDomains = []string{""}
	}
	if len(addresses) == 0 {
		ca.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 8*net.IPv4len)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 8*net.IPv6len)},
		}
	}
}

// permits reports whether a CA has name constraints that permit all hosts.
func permits(ca *x509.Certificate, names []string, addresses []net.IP) bool {
	permitted := func(ip net.IP) bool {
		return slices.ContainsFunc(ca.PermittedIPRanges, func(n *net.IPNet) bool { return n.Contains(ip) })
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(ca.PermittedDNSDomains, name) }) &&
		!slices.ContainsFunc(addresses, func(ip net.IP) bool { return !permitted(ip) })
}

// single is the range of one address.
func single(ip net.IP) *net.IPNet {
	if short := ip.To4(); short != nil {
		ip = short
	}
	return &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))}
}
