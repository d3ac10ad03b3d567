package tenancy

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// MaxIcon is the maximum size of the image of a CatalogEntry in bytes.
const MaxIcon = 16 << 10

// icons are the media types of images that a CatalogEntry may have, and how to tell one.
var icons = map[string]func([]byte) bool{
	"image/png":     func(b []byte) bool { return bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) },
	"image/webp":    func(b []byte) bool { return len(b) > 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP" },
	"image/svg+xml": func(b []byte) bool { return bytes.Contains(b, []byte("<svg")) },
}

// checkIcon refuses what is not a data: URL of a PNG, a WebP or an SVG of at most MaxIcon bytes,
// in base64. A browser that shows a page of the portal asks no other server for images.
func checkIcon(field, url string) error {
	invalid := unprocessable(field, "must be a data: URL of a PNG, WebP or SVG of at most 16 KiB in base64, such as data:image/png;base64,iVBORw0KGgo…")
	data, ok := strings.CutPrefix(url, "data:")
	media, encoded, separated := strings.Cut(data, ";base64,")
	is, known := icons[media]
	if !ok || !separated || !known || len(encoded) > base64.StdEncoding.EncodedLen(MaxIcon) {
		return invalid
	}
	if image, err := base64.StdEncoding.Strict().DecodeString(encoded); err != nil || len(image) > MaxIcon || !is(image) {
		return invalid
	}
	return nil
}
