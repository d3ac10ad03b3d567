package tenancy_test

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const svgIcon = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="

func catalogSpec() v1alpha1.CatalogEntrySpec {
	return v1alpha1.CatalogEntrySpec{
		DisplayName: "Widgets", Slug: "widgets", Description: "Things.\n\tAnd more.", Version: "v1",
		APIExport: v1alpha1.APIExportRef{Path: "root:kedge:providers:acme", Name: "widgets.example.org"},
		Backend:   &v1alpha1.CatalogBackend{URL: "https://widgets.example.org/api"}, UI: &v1alpha1.CatalogUI{IconURL: svgIcon},
		MemberResources: []string{"widgets", "gadgets.example.org"},
	}
}

func TestCatalogSpec_isChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, tenancy.CheckCatalogSpec(catalogSpec(), false))
	for name, c := range map[string]struct {
		change func(*v1alpha1.CatalogEntrySpec)
		field  string
	}{
		"no optional field": {func(s *v1alpha1.CatalogEntrySpec) {
			*s = v1alpha1.CatalogEntrySpec{DisplayName: s.DisplayName, Slug: s.Slug, APIExport: s.APIExport, UI: &v1alpha1.CatalogUI{}}
		}, ""},
		"no display name":       {func(s *v1alpha1.CatalogEntrySpec) { s.DisplayName = "" }, "displayName"},
		"no slug":               {func(s *v1alpha1.CatalogEntrySpec) { s.Slug = "" }, "slug"},
		"a capital":             {func(s *v1alpha1.CatalogEntrySpec) { s.Slug = "Widgets" }, "slug"},
		"a hyphen first":        {func(s *v1alpha1.CatalogEntrySpec) { s.Slug = "-w" }, "slug"},
		"a long slug":           {func(s *v1alpha1.CatalogEntrySpec) { s.Slug = strings.Repeat("a", 64) }, "slug"},
		"a bell":                {func(s *v1alpha1.CatalogEntrySpec) { s.Description = "a\ab" }, "description"},
		"a long description":    {func(s *v1alpha1.CatalogEntrySpec) { s.Description = strings.Repeat("a", 4097) }, "description"},
		"two lines":             {func(s *v1alpha1.CatalogEntrySpec) { s.Version = "1\n2" }, "version"},
		"a long version":        {func(s *v1alpha1.CatalogEntrySpec) { s.Version = strings.Repeat("1", 65) }, "version"},
		"no path":               {func(s *v1alpha1.CatalogEntrySpec) { s.APIExport.Path = "" }, "apiExport.path"},
		"a path with a slash":   {func(s *v1alpha1.CatalogEntrySpec) { s.APIExport.Path = "root:kedge:providers:../x" }, "apiExport.path"},
		"no export":             {func(s *v1alpha1.CatalogEntrySpec) { s.APIExport.Name = "" }, "apiExport.name"},
		"a slash in a name":     {func(s *v1alpha1.CatalogEntrySpec) { s.APIExport.Name = "a/b" }, "apiExport.name"},
		"http":                  {func(s *v1alpha1.CatalogEntrySpec) { s.Backend.URL = "http://example.org" }, "backend.url"},
		"an empty URL":          {func(s *v1alpha1.CatalogEntrySpec) { s.Backend.URL = "" }, "backend.url"},
		"an icon that is code":  {func(s *v1alpha1.CatalogEntrySpec) { s.UI.IconURL = "javascript:alert(1)" }, "ui.iconURL"},
		"an icon of a server":   {func(s *v1alpha1.CatalogEntrySpec) { s.UI.IconURL = "https://example.org/icon.svg" }, "ui.iconURL"},
		"an icon that is HTML":  {func(s *v1alpha1.CatalogEntrySpec) { s.UI.IconURL = "data:text/html;base64,PGI+" }, "ui.iconURL"},
		"a PNG that is none":    {func(s *v1alpha1.CatalogEntrySpec) { s.UI.IconURL = "data:image/png;base64,PHN2Zz4=" }, "ui.iconURL"},
		"an icon not in base64": {func(s *v1alpha1.CatalogEntrySpec) { s.UI.IconURL = "data:image/svg+xml,<svg/>" }, "ui.iconURL"},
		"an icon over 16 KiB": {func(s *v1alpha1.CatalogEntrySpec) {
			s.UI.IconURL = "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte("<svg"+strings.Repeat(" ", tenancy.MaxIcon-3)))
		}, "ui.iconURL"},
		"a resource twice":   {func(s *v1alpha1.CatalogEntrySpec) { s.MemberResources = []string{"a", "a"} }, "memberResources"},
		"a subresource":      {func(s *v1alpha1.CatalogEntrySpec) { s.MemberResources = []string{"a/status"} }, "memberResources"},
		"a star":             {func(s *v1alpha1.CatalogEntrySpec) { s.MemberResources = []string{"*"} }, "memberResources"},
		"too many resources": {func(s *v1alpha1.CatalogEntrySpec) { s.MemberResources = make([]string, 65) }, "memberResources"},
	} {
		spec := catalogSpec()
		c.change(&spec)
		requireField(t, tenancy.CheckCatalogSpec(spec, false), c.field, name)
	}
}

func TestCatalogSpec_takesIcons(t *testing.T) {
	t.Parallel()
	for _, icon := range []string{
		"", svgIcon,
		"data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n...")),
		"data:image/webp;base64," + base64.StdEncoding.EncodeToString([]byte("RIFF\x00\x00\x00\x00WEBPVP8 ")),
		"data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte("<svg"+strings.Repeat(" ", tenancy.MaxIcon-4))),
	} {
		spec := catalogSpec()
		spec.UI.IconURL = icon
		require.NoError(t, tenancy.CheckCatalogSpec(spec, false))
	}
}

func TestCatalogSpec_keepsLockedFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*v1alpha1.CatalogEntrySpec)
		field  string
	}{
		"display fields": {func(s *v1alpha1.CatalogEntrySpec) {
			s.DisplayName, s.Description, s.Version, s.UI, s.MemberResources = "x", "", "2", nil, nil
		}, ""},
		"slug":            {func(s *v1alpha1.CatalogEntrySpec) { s.Slug = "x" }, "slug"},
		"path":            {func(s *v1alpha1.CatalogEntrySpec) { s.APIExport.Path += "x" }, "apiExport.path"},
		"export":          {func(s *v1alpha1.CatalogEntrySpec) { s.APIExport.Name += "x" }, "apiExport.name"},
		"another backend": {func(s *v1alpha1.CatalogEntrySpec) { s.Backend.URL += "x" }, "backend.url"},
		"no backend":      {func(s *v1alpha1.CatalogEntrySpec) { s.Backend = nil }, "backend.url"},
	} {
		spec := catalogSpec()
		c.change(&spec)
		err := tenancy.CheckCatalogLocked(catalogSpec(), spec)
		requireField(t, err, c.field, name)
		require.True(t, err == nil || errs.Is(err, errs.Unprocessable), name)
	}
}

func TestBackendURL_isPublicHTTPS(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]struct{ public, private bool }{
		"https://widgets.example.org":           {true, true},
		"https://widgets.example.org:8443/a?b":  {true, true},
		"https://8.8.8.8":                       {true, true},
		"https://[2606:4700::1111]":             {true, true},
		"https://10.example.org":                {true, true},
		"http://widgets.example.org":            {},
		"HTTPS://widgets.example.org":           {},
		"https://":                              {},
		"https://:443":                          {},
		"https://user:pass@widgets.example.org": {},
		"https://widgets.example.org/#a":        {},
		"https://127.0.0.1":                     {false, true},
		"https://127.0.0.1.":                    {false, true},
		"https://localhost:8443":                {false, true},
		"https://example.com:443":               {true, true},
		"https://example.com:1024":              {true, true},
		"https://example.com:65535":             {true, true},
		"https://example.com:0":                 {},
		"https://example.com:22":                {},
		"https://example.com:442":               {},
		"https://example.com:1023":              {},
		"https://example.com:65536":             {},
		"https://a.LOCALHOST":                   {false, true},
		"https://10.1.2.3":                      {false, true},
		"https://172.16.0.1":                    {false, true},
		"https://192.168.1.1":                   {false, true},
		"https://100.64.0.1":                    {false, true},
		"https://[::1]":                         {false, true},
		"https://[fd12::1]":                     {false, true},
		"https://[::ffff:10.0.0.1]":             {false, true},
		"https://[64:ff9b::a00:1]":              {false, true},
		"https://[::ffff:0:a00:1]":              {false, true},
		"https://[2001:0:a00:1::1]":             {false, true},
		"https://168.63.129.16":                 {},
		"https://[::ffff:100.100.100.200]":      {},
		"https://192.0.0.192":                   {},
		"https://[2002:a00:1::]":                {false, true},
		"https://169.254.169.254":               {},
		"https://[fe80::1]":                     {},
		"https://[fe80::1%25eth0]":              {},
		"https://[fd00:ec2::254]":               {},
		"https://[64:ff9b::a9fe:a9fe]":          {},
		"https://0.0.0.0":                       {},
		"https://[::]":                          {},
		"https://224.0.0.1":                     {},
		"https://[ff02::1]":                     {},
		"https://255.255.255.255":               {},
		"https://127.1":                         {},
		"https://2130706433":                    {},
		"https://0x7f000001":                    {},
		"https://0177.0.0.1":                    {},
		"https://1.2.3.4.5":                     {},
	} {
		for private, allowed := range map[bool]bool{false: want.public, true: want.private} {
			err := tenancy.CheckBackendURL("backend.url", url, private)
			require.Equal(t, allowed, err == nil, "%s, private %v: %v", url, private, err)
			require.True(t, err == nil || errs.Is(err, errs.Unprocessable), url)
		}
	}
	require.False(t, tenancy.CheckBackendAddress(netip.Addr{}, true), "no address")
}

// The hub knocks at no port of other services, and at none of its own addresses.
func TestBackendTarget_isNeitherTheHubNorAnotherService(t *testing.T) {
	t.Parallel()
	own := []netip.AddrPort{netip.MustParseAddrPort("93.184.216.34:443"), netip.MustParseAddrPort("[2001:4860::1]:8443"), netip.MustParseAddrPort("127.0.0.1:9443")}
	for to, want := range map[string]struct{ public, private bool }{
		"8.8.8.8:443":                {true, true},
		"8.8.8.8:8443":               {true, true},
		"8.8.8.8:22":                 {},
		"8.8.8.8:25":                 {},
		"93.184.216.34:443":          {},
		"93.184.216.34:8443":         {},
		"[::ffff:93.184.216.34]:443": {},
		"[64:ff9b::5db8:d822]:443":   {},
		"[2001:4860::1]:443":         {},
		"[2001:4860::2]:443":         {true, true},
		"127.0.0.1:9443":             {},
		"[::ffff:127.0.0.1]:9443":    {},
		"127.0.0.1:8443":             {false, true},
		"10.0.0.1:8443":              {false, true},
		"169.254.169.254:443":        {},
	} {
		require.Equal(t, want.public, tenancy.CheckBackendTarget(netip.MustParseAddrPort(to), own, false), to)
		require.Equal(t, want.private, tenancy.CheckBackendTarget(netip.MustParseAddrPort(to), own, true), "%s, private", to)
	}
}
