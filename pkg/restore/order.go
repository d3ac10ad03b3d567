package restore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/backup"
	"github.com/faroshq/kedge-hub/pkg/durable"
)

const (
	// orderFile is the Order in backup.RestoreDir, historyDir has the files that it names, and doneDir is where the
	// folder goes when the Order is carried out.
	orderFile  = "order.json"
	historyDir = "history"
	doneDir    = ".restored"
)

// Order is what a restore leaves to the next start of the hub.
type Order struct {
	// BackupAt is the time of the backup, by its manifest.
	BackupAt time.Time `json:"backupAt"`
	// Heads are the ends of all chains at that time, by the manifest.
	Heads []audit.Head `json:"heads"`
	// Ended are the ends of chains that went no further when the backup was made: nobody needs their files.
	Ended []audit.Head `json:"ended,omitempty"`
	// Quiet are the ends of chains of which nothing was heard for so long that they had probably ended, too: nothing is
	// missing if no file has them.
	Quiet []audit.Head `json:"quiet,omitempty"`
	// EarlyHeads is true if the Heads were taken before the backup. BackupAt alone then says what the backup has.
	EarlyHeads bool `json:"earlyHeads,omitempty"`
	// Doubts say why it is not certain what the backup has, or what ended after it.
	Doubts []string `json:"doubts,omitempty"`
	// Files are the names of the files of audit chains, below the folder of the Order.
	Files []string `json:"files"`
	// AcceptLostHistory is true if the operator accepts that not everything that ended can be known.
	AcceptLostHistory bool `json:"acceptLostHistory,omitempty"`
}

// Phase says how far an Order is carried out. The phases follow each other.
type Phase string

// The phases.
const (
	// PhaseWriting is that of an Order that is not whole. Nobody carries it out, and nobody serves.
	PhaseWriting Phase = "Writing"
	// PhaseOrdered is that of an Order with Steps that are left.
	PhaseOrdered Phase = "Ordered"
	// PhaseApplied is that of an Order with no Steps left, while the bindings in kcp follow.
	PhaseApplied Phase = "Applied"
	// PhaseHeld is that of an Order that is carried out, while purges are held.
	PhaseHeld Phase = "Held"
)

// Before reports whether a phase is one before another.
func (p Phase) Before(other Phase) bool {
	all := []Phase{PhaseWriting, PhaseOrdered, PhaseApplied, PhaseHeld}
	return slices.Index(all, p) < slices.Index(all, other)
}

// Place copies files of audit chains into a data folder and leaves the Order there, which names the copies. The Order
// is written last: a folder without one has no history.
func Place(dataDir string, o Order, files []string) error {
	dir := filepath.Join(dataDir, backup.RestoreDir)
	if err := os.MkdirAll(filepath.Join(dir, historyDir), 0o700); err != nil {
		return err
	}
	o.Files = nil
	for i, file := range files {
		name := filepath.Join(historyDir, fmt.Sprintf("%04d.jsonl", i))
		if err := copyFile(filepath.Join(dir, name), file); err != nil {
			return fmt.Errorf("copy %s: %w", file, err)
		}
		o.Files = append(o.Files, name)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := durable.Sync(filepath.Join(dir, historyDir)); err != nil {
		return err
	}
	return errors.Join(durable.Replace(filepath.Join(dir, orderFile), raw, 0o600), durable.Sync(dataDir))
}

// Find returns the Order in a data folder, with the paths of its files; nil if nothing was restored. A folder
// backup.RestoreDir without an Order is one of a restore that was interrupted: its history is not there.
func Find(dataDir string) (*Order, error) {
	if err := os.RemoveAll(filepath.Join(dataDir, doneDir)); err != nil {
		return nil, err
	}
	dir := filepath.Join(dataDir, backup.RestoreDir)
	raw, err := os.ReadFile(filepath.Join(dir, orderFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("a restore into %s was interrupted before it said what to replay; restore again into an empty folder", dataDir)
	}
	if err != nil {
		return nil, err
	}
	o := &Order{}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, orderFile), err)
	}
	for i, name := range o.Files {
		o.Files[i] = filepath.Join(dir, name)
	}
	return o, nil
}

// Done ends restore mode, in one rename.
func Done(dataDir string) error {
	if err := os.RemoveAll(filepath.Join(dataDir, doneDir)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dataDir, backup.RestoreDir), filepath.Join(dataDir, doneDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(durable.Sync(dataDir), os.RemoveAll(filepath.Join(dataDir, doneDir)))
}

func copyFile(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, source)
	return errors.Join(err, f.Sync(), f.Close())
}
