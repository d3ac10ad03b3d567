package framework

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// SaveRoot copies the data of the root shard and of the cache server into a folder, and SaveShard those of another shard.
// The components stand still meanwhile, as in a snapshot of their disks, and go on afterwards.
func (s *ShardedKCP) SaveRoot(to string) error { return s.save(to, cacheServer, RootShard) }

// SaveShard is explained at SaveRoot.
func (s *ShardedKCP) SaveShard(to, name string) error { return s.save(to, name) }

func (s *ShardedKCP) save(to string, names ...string) error {
	for _, name := range names {
		if err := s.processes[name].Signal(syscall.SIGSTOP); err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, os.CopyFS(filepath.Join(to, name), os.DirFS(s.file(name))))
	}
	for _, name := range names {
		errs = append(errs, s.processes[name].Signal(syscall.SIGCONT))
	}
	return errors.Join(errs...)
}

// Restore starts all components anew, which were stopped, with the data in a folder of SaveRoot and SaveShard. The ports
// stay.
func (s *ShardedKCP) Restore(from string) error {
	saved, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, component := range saved {
		dir := s.file(component.Name())
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(filepath.Join(from, component.Name())))); err != nil {
			return err
		}
	}
	return s.startAll()
}
