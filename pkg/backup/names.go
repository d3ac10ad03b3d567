package backup

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// The entries that are no files of the data folder under their own names.
const (
	etcdEntry     = "etcd.snapshot"
	manifestEntry = "manifest.json"
)

// recordsEntry is the records database, where it is in the data folder.
const recordsEntry = "records/records.db"

// The folders of the data folder that have files which a restored hub needs.
const (
	tlsDir     = "tls"
	kcpDir     = "kcp"
	etcdDir    = kcpDir + "/etcd-server"
	secretsDir = etcdDir + "/secrets"
)

// kept reports whether a file of the data folder is in a backup as it is: certificates, keys, and what kcp wrote once.
// Locks, and files that somebody is about to rename, are not.
func kept(name string) bool {
	if !fs.ValidPath(name) || strings.Contains(name, `\`) {
		return false
	}
	dir, base := path.Dir(name), path.Base(name)
	switch {
	case strings.HasPrefix(base, ".new-"), strings.HasSuffix(base, ".new"):
		return false
	case dir == tlsDir:
		return true
	case dir == kcpDir:
		return base != "lock" && name != etcdDir
	}
	return strings.HasPrefix(name, secretsDir+"/")
}

// leads reports whether a folder has files that are kept, or folders with such.
func leads(name string) bool {
	return name == "." || name == tlsDir || name == kcpDir || name == etcdDir || name == secretsDir || strings.HasPrefix(name, secretsDir+"/")
}

// keptIn returns the files of a data folder that are kept, in their order. One that is a link, or in a folder that is
// one, is an error: a backup without it would be of no use.
func keptIn(dir fs.FS) (names []string, err error) {
	err = fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case leads(name) && d.IsDir():
			return nil
		case d.IsDir():
			return fs.SkipDir
		case leads(name) && !strings.HasPrefix(name, secretsDir+"/"):
			return fmt.Errorf("%s is no folder", name)
		case !kept(name):
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no regular file", name)
		}
		names = append(names, name)
		return nil
	})
	return names, err
}
