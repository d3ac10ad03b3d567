package proxy

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// maxName is the length of the longest text that can be the name of an object.
	maxName = 512
	// maxProtobufHead is how much of an object in Protobuf is read: its type and its name come first.
	maxProtobufHead = 2 << 10

	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// protobufMagic precedes every object that Kubernetes encodes in Protobuf.
const protobufMagic = "k8s\x00"

// reportMade returns a func that reports the name of a created object to Config.Made. It returns nil for
// a request that makes none, or that says the name itself.
func (p *Proxy) reportMade(r *http.Request, info *request.RequestInfo) func(name string) {
	if p.config.Made == nil || !info.IsResourceRequest || info.Verb != "create" || info.Subresource != "" || info.Name != "" {
		return nil
	}
	return func(name string) { p.config.Made(r, name) }
}

// readable asks kcp for an answer in which the name of the created object can be read: not compressed,
// and in one of the two encodings of whole objects. No client can leave the name out of the audit log by
// asking for a table.
func readable(h http.Header) {
	h.Del("Accept-Encoding")
	var kept []string
	for clause := range strings.SplitSeq(strings.Join(h["Accept"], ","), ",") {
		media, parameters, _ := strings.Cut(clause, ";")
		media = strings.ToLower(strings.TrimSpace(media))
		if (media == jsonType || media == protobufType) && !strings.Contains(strings.ToLower(parameters), "as=table") {
			kept = append(kept, strings.TrimSpace(clause))
		}
	}
	if len(kept) == 0 {
		kept = []string{jsonType}
	}
	h["Accept"] = []string{strings.Join(kept, ",")}
}

// reportingName returns the body of an answer, which reports the name of the object that passes.
func reportingName(r *http.Response, made func(name string)) io.ReadCloser {
	b := &namedBody{ReadCloser: r.Body, made: made}
	b.protobuf = strings.HasPrefix(r.Header.Get("Content-Type"), protobufType)
	return b
}

type namedBody struct {
	io.ReadCloser
	protobuf bool
	head     []byte
	scan     nameScanner
	// made is nil once the name was reported.
	made func(name string)
}

func (b *namedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.made == nil {
		return n, err
	}
	name := ""
	if b.protobuf {
		b.head = append(b.head, p[:min(n, maxProtobufHead-len(b.head))]...)
		name = nameInProtobuf(b.head)
	} else {
		name = b.scan.feed(p[:n])
	}
	if name != "" {
		b.made(name)
		b.made, b.head = nil, nil
	}
	return n, err
}

// nameInProtobuf returns metadata.name of an object if its first bytes have all of it: a runtime.Unknown,
// with the object as field 2, its ObjectMeta as field 1, and the name as field 1 of that.
func nameInProtobuf(head []byte) string {
	rest, ok := strings.CutPrefix(string(head), protobufMagic)
	if !ok {
		return ""
	}
	object, _ := protobufField([]byte(rest), 2)
	metadata, _ := protobufField(object, 1)
	if name, whole := protobufField(metadata, 1); whole {
		return string(name)
	}
	return ""
}

// protobufField returns the first field of a number, which must have a length. whole is false if the message
// ends before it does.
func protobufField(message []byte, number uint64) (field []byte, whole bool) {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag&7 != 2 {
			return nil, false
		}
		message = message[n:]
		size, n := binary.Uvarint(message)
		if n <= 0 {
			return nil, false
		}
		message = message[n:]
		whole = size <= uint64(len(message))
		if whole {
			field, message = message[:size], message[size:]
		} else {
			field, message = message, nil
		}
		if tag>>3 == number {
			return field, whole
		}
	}
	return nil, false
}

// nameScanner finds metadata.name in a JSON object that passes in pieces, and keeps nothing but one text.
type nameScanner struct {
	depth                int
	text                 []byte
	inText, escaped, key bool
	// member is the last key of the object, and field that of its metadata. inMetadata is true between
	// the braces of the metadata.
	member, field string
	inMetadata    bool
}

// feed returns the name if it ends in the next piece.
func (s *nameScanner) feed(piece []byte) (name string) {
	for _, c := range piece {
		if s.inText {
			if name = s.inside(c); name != "" {
				return name
			}
			continue
		}
		switch c {
		case '"':
			s.inText, s.text = true, s.text[:0]
		case '{', '[':
			s.depth++
			s.key = c == '{'
			if s.depth == 2 {
				s.inMetadata = s.key && s.member == "metadata"
			}
		case '}', ']':
			s.depth--
			s.key = false
			s.inMetadata = s.inMetadata && s.depth >= 2
		case ':':
			s.key = false
		case ',':
			s.key = true
		}
	}
	return ""
}

// inside takes a byte of a text, and returns the text if it is the name.
func (s *nameScanner) inside(c byte) (name string) {
	if c == '"' && !s.escaped {
		s.inText = false
		switch {
		case s.depth == 1 && s.key:
			s.member = string(s.text)
		case s.depth == 2 && s.inMetadata && s.key:
			s.field = string(s.text)
		case s.depth == 2 && s.inMetadata && s.field == "name":
			if json.Unmarshal([]byte(`"`+string(s.text)+`"`), &name) != nil {
				return ""
			}
		}
		return name
	}
	s.escaped = c == '\\' && !s.escaped
	if len(s.text) < maxName {
		s.text = append(s.text, c)
	}
	return ""
}
