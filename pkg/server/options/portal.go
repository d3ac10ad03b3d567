package options

import "github.com/spf13/pflag"

// PortalOptions are about the web pages.
type PortalOptions struct {
	// Portal (--portal) serves the web pages below /ui/. Default true.
	Portal bool
	// DownloadsDir (--downloads-dir) is the directory of the kedge programs that the portal offers
	// below /ui/downloads/. Empty means none.
	DownloadsDir string
}

func (p *PortalOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&p.Portal, "portal", p.Portal, "Serve the web portal at /ui/. With --token-file on a loopback address, people sign in to it with a token.")
	fs.StringVar(&p.DownloadsDir, "downloads-dir", p.DownloadsDir,
		"Directory of programs that /ui/downloads/ offers, with checksums: files that are named kedge..., such as kedge-linux-amd64.tar.gz. "+
			"They are read at the start. The image has kedge for Linux, macOS and Windows, and offers it.")
}

func (p *PortalOptions) complete(fail func(flag, format string, args ...any)) {
	if p.DownloadsDir != "" {
		readable("downloads-dir", p.DownloadsDir, fail)
	}
}
