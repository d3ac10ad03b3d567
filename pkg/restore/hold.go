package restore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/faroshq/kedge-hub/pkg/durable"
)

// holdFile is there, below the data folder, while a restored hub purges nothing.
const holdFile = "purges-held"

// Hold has the hub of a data folder purge nothing until Release, also after a restart.
func Hold(dataDir string) error {
	return durable.Replace(filepath.Join(dataDir, holdFile), nil, 0o600)
}

// Held reports whether the hub of a data folder purges nothing.
func Held(dataDir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dataDir, holdFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Release ends what Hold began.
func Release(dataDir string) error {
	if err := os.Remove(filepath.Join(dataDir, holdFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.Sync(dataDir)
}
