package tenancy

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// MaxIcon is the maximum size of the image of a CatalogEntry in bytes.
const MaxIcon = 16 << 10

// isIcon reports whether data is an image of a media type that a CatalogEntry may have.
func isIcon(media string, data []byte) bool {
	switch media {
	case "image/png":
		return bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n"))
	case "image/webp":
		return len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP"
	case "image/svg+xml":
		return bytes.Contains(data, []byte("<svg"))
	}
	return false
}

// checkIcon refuses what is not a data: URL of a PNG, a WebP or an SVG of at most MaxIcon bytes,
// in base64. A browser that shows a page of the portal asks no other server for images.
func checkIcon(field, url string) error {
	invalid := errs.UnprocessableField(field,
		"must be a data: URL of a PNG, WebP or SVG of at most 16 KiB in base64, such as data:image/png;base64,iVBORw0KGgo…")
	data, ok := strings.CutPrefix(url, "data:")
	media, encoded, separated := strings.Cut(data, ";base64,")
	if !ok || !separated || len(encoded) > base64.StdEncoding.EncodedLen(MaxIcon) {
		return invalid
	}
	if image, err := base64.StdEncoding.Strict().DecodeString(encoded); err != nil || len(image) > MaxIcon || !isIcon(media, image) {
		return invalid
	}
	return nil
}
