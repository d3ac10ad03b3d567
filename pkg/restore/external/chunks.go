package external

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

const (
	// chunkLabel is the label of chunks. Its value is the ID of the document.
	chunkLabel = "kedge.faros.sh/restore"
	// dataField is the field of the Secrets.
	dataField = "data"
	// chunkSize in bytes is half of what a Secret may have.
	chunkSize = 512 << 10
)

// document names something that is stored in chunks.
type document struct {
	ID     string `json:"id"`
	Chunks int    `json:"chunks"`
	// SHA256 is that of all chunks.
	SHA256 string `json:"sha256"`
}

// write stores a value.
func (o *Orders) write(ctx context.Context, value any) (d document, err error) {
	raw := &bytes.Buffer{}
	to := gzip.NewWriter(raw)
	if err := errors.Join(json.NewEncoder(to).Encode(value), to.Close()); err != nil {
		return document{}, err
	}
	hash := sha256.Sum256(raw.Bytes())
	d = document{ID: strings.ToLower(rand.Text()), SHA256: hex.EncodeToString(hash[:])}
	for part := range slices.Chunk(raw.Bytes(), chunkSize) {
		s := &corev1.Secret{Data: map[string][]byte{dataField: part}}
		s.Name, s.Namespace, s.Labels = d.name(d.Chunks), metav1.NamespaceDefault, map[string]string{chunkLabel: d.ID}
		if _, err := o.secrets.Create(ctx, s, metav1.CreateOptions{FieldManager: kcp.FieldManager}); err != nil {
			return document{}, fmt.Errorf("write %s: %w", s.Name, err)
		}
		d.Chunks++
	}
	return d, nil
}

func (d document) name(chunk int) string { return fmt.Sprintf("%s-%s-%d", headName, d.ID, chunk) }

// read reads a value that was stored.
func (o *Orders) read(ctx context.Context, d document, value any) error {
	raw := &bytes.Buffer{}
	for n := range d.Chunks {
		s, err := o.secrets.Get(ctx, d.name(n), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read %s: %w", d.name(n), err)
		}
		raw.Write(s.Data[dataField])
	}
	if hash := sha256.Sum256(raw.Bytes()); hex.EncodeToString(hash[:]) != d.SHA256 {
		return fmt.Errorf("read %s-%s: it is not what was written: the hash is another one", headName, d.ID)
	}
	from, err := gzip.NewReader(raw)
	if err != nil {
		return err
	}
	return errors.Join(json.NewDecoder(from).Decode(value), from.Close())
}

// drop removes a document.
func (o *Orders) drop(ctx context.Context, d document) error {
	for n := range d.Chunks {
		if err := o.secrets.Delete(ctx, d.name(n), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove %s: %w", d.name(n), err)
		}
	}
	return nil
}

// prune removes all chunks but those of what the head names. Nothing else is written meanwhile.
func (o *Orders) prune(ctx context.Context, head State) error {
	list := &corev1.SecretList{}
	err := o.secrets.GetClient().Get().Namespace(metav1.NamespaceDefault).Resource("secrets").
		VersionedParams(&metav1.ListOptions{LabelSelector: chunkLabel}, o.clients.Parameters()).Do(ctx).Into(list)
	if err != nil {
		return fmt.Errorf("list what earlier restores left: %w", err)
	}
	for _, s := range list.Items {
		if id := s.Labels[chunkLabel]; id == head.Plan.ID || id == head.Report.ID {
			continue
		}
		if err := o.secrets.Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove %s: %w", s.Name, err)
		}
	}
	return nil
}
