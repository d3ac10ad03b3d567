package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/faroshq/kedge-hub/pkg/durable"
)

// markSuffix follows the name of the file of a chain in the name of its mark.
const markSuffix = ".whole"

// mark is a file beside that of a chain. It keeps beyond the end of the process that events are lost which no event of the
// chain counts. It has an empty line while there are none, so that who reads it as a part of the log finds nothing, and it
// is empty while there are some: that takes no space, so a full disk does not prevent it.
type mark struct {
	path string
	says said
}

// said is what the file of a mark says. It is unsure where there is none.
type said int

const (
	unsure said = iota
	whole
	broken
)

// openMark returns the mark of the chain in a file. A chain without one is new, or a version before this one wrote it: it
// counts as whole, unless the disk has no room for the mark. That version has then probably lost events, too, and forgotten
// them at its end.
func openMark(file string) (*mark, error) {
	m := &mark{path: file + markSuffix}
	info, err := os.Stat(m.path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file; put it elsewhere", m.path)
	case err == nil && info.Size() > 0:
		m.says = whole
	case err == nil:
		m.says = broken
	case errors.Is(err, os.ErrNotExist):
		err = m.mend(func() error { return nil })
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			_ = m.broken()
			return m, nil
		}
		return m, err
	default:
		return nil, err
	}
	return m, nil
}

// EndLost reports whether the mark beside a file of the log says that events are lost behind its end. It is false for a
// file without a mark, such as one that a collector has.
func EndLost(file string) bool {
	info, err := os.Stat(file + markSuffix)
	return err == nil && info.Size() == 0
}

// broken has the mark say that events are lost.
func (m *mark) broken() error {
	if m.says == broken {
		return nil
	}
	f, err := os.OpenFile(m.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	m.says = broken
	// A disk that cannot sync keeps it beyond the end of the process.
	_ = errors.Join(f.Sync(), f.Close(), durable.Sync(filepath.Dir(m.path)))
	return nil
}

// mend has the mark say that no events are lost, once synced has put on the disk the event that counts those that were.
func (m *mark) mend(synced func() error) error {
	if m.says == whole {
		return nil
	}
	if err := synced(); err != nil {
		return err
	}
	// It may have its line also where that fails.
	m.says = unsure
	if err := durable.Replace(m.path, []byte("\n"), 0o600); err != nil {
		return err
	}
	m.says = whole
	return nil
}

// openMark opens the mark of the chain. An event that was lost before counts as one, whatever their number was.
func (c *chain) openMark() (err error) {
	if c.mark, err = openMark(c.file.path); err == nil && c.mark.says != whole {
		c.lost = 1
	}
	return err
}

// remember has the mark of a chain say whether events are lost. It runs after each event, and so before a change that is
// carried out without one. A mark that cannot be mended is tried again after the next event: until then, a restart counts
// an event as lost that is none.
func (c *chain) remember() error {
	switch {
	case c.mark == nil:
		return nil
	case c.lost == 0:
		_ = c.mark.mend(c.file.to.Sync)
		return nil
	}
	return c.mark.broken()
}
