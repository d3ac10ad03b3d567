package audit

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"time"
)

// Ends returns the last event of each chain in the files of o, of those that have one. There is none where o names no
// regular files.
func Ends(o Options) (ends []Head, err error) {
	if o.File == "" || o.File == Stdout {
		return nil, nil
	}
	if info, err := os.Stat(o.File); err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	for _, c := range []struct{ path, log string }{{o.File, Rights}, {o.WritesFile(), Writes}} {
		last, _, err := lastOf(c.path, c.log)
		if err != nil {
			return nil, err
		}
		if last.OK {
			ends = append(ends, Head{Replica: last.Event.Replica, Log: c.log, Seq: last.Event.Seq, Hash: last.Hash})
		}
	}
	return ends, nil
}

// SetAside moves the files of o into a new folder beside them, so that the next log of o is that of a new replica. The
// folder is empty if nothing was moved.
func SetAside(o Options, now time.Time) (folder string, err error) {
	to := filepath.Join(filepath.Dir(o.File), "aside-"+now.UTC().Format(rotatedAt))
	if err := os.Mkdir(to, 0o700); err != nil {
		return "", err
	}
	for _, path := range []string{o.File, o.WritesFile()} {
		files, err := Files(path)
		if err != nil {
			return folder, err
		}
		for _, name := range files {
			if err := os.Rename(name, filepath.Join(to, filepath.Base(name))); err != nil {
				return folder, err
			}
			folder = to
		}
	}
	return folder, nil
}

// PutAside is the event of a new replica that the files of another one are in a folder.
func PutAside(folder string) Event {
	return Event{
		ID: rand.Text(), Stage: StageOutcome, Actor: Actor{Kind: ActorHub}, Action: "rotate",
		Rotation: &Rotation{File: filepath.Base(folder)},
	}
}
