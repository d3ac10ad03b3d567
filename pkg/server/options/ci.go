package options

import (
	"slices"

	"github.com/spf13/pflag"
)

// CIOptions are the flags of the identity providers of jobs, such as those of GitHub Actions.
type CIOptions struct {
	// Issuers (--ci-issuer) are the https URLs of the issuers whose jobs bots may trust. Default
	// none.
	Issuers []string
	// CAFile (--ci-ca-file) is a PEM file with the CA certificates of the issuers. Empty means those
	// of the system.
	CAFile string
	// Certificates are those of CAFile. It is not a flag.
	Certificates []byte
}

func (o *CIOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.Issuers, "ci-issuer", o.Issuers, "The https URL of an OpenID Connect issuer whose jobs bots may trust, such as https://token.actions.githubusercontent.com. Can be repeated. Without one no job gets a token for its own.")
	fs.StringVar(&o.CAFile, "ci-ca-file", o.CAFile, "PEM file with the CA certificates that the certificates of --ci-issuer are verified with, instead of those of the system.")
}

// complete validates the flags together, and reads the CA certificates.
func (o *CIOptions) complete(fail func(flag, format string, args ...any)) {
	for i, issuer := range o.Issuers {
		if !issuerURL(issuer) {
			fail("ci-issuer", "%q is not an https URL without query, such as https://token.actions.githubusercontent.com", issuer)
		}
		if slices.Contains(o.Issuers[:i], issuer) {
			fail("ci-issuer", "%q is given twice", issuer)
		}
	}
	if o.CAFile == "" {
		return
	}
	if len(o.Issuers) == 0 {
		fail("ci-ca-file", "needs --ci-issuer")
	}
	var err error
	if o.Certificates, err = o.ReadCA(); err != nil {
		fail("ci-ca-file", "%v", err)
	}
}

// ReadCA reads the CA certificates of CAFile.
func (o *CIOptions) ReadCA() ([]byte, error) { return readCA(o.CAFile) }
