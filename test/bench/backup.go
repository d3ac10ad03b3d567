package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

// backupArgument is the argument that measures a neighbour beside backups.
const backupArgument = "backup"

// chunk is the size of a value with which the store is filled. etcd takes up to 1.5 MiB.
const chunk = 512 << 10

// backupOptions are the flags of the measurement of backups.
type backupOptions struct {
	// size is that of the store, in MiB.
	size    int
	lasting time.Duration
	rounds  int
}

// parseBackup reads the flags. It writes help and mistakes to out.
func parseBackup(args []string, out io.Writer) (backupOptions, error) {
	var o backupOptions
	fs := flag.NewFlagSet(backupArgument, flag.ContinueOnError)
	fs.SetOutput(out)
	fs.IntVar(&o.size, "size", 1024, "size of the store in MiB")
	length := fs.Int("seconds", 20, "length of each measurement in seconds: one without and one with backups in each round")
	fs.IntVar(&o.rounds, "rounds", 3, "number of rounds; the p99 is that of all")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if o.lasting = time.Duration(*length) * time.Second; o.size < 1 || *length < 1 || o.rounds < 1 || fs.NArg() > 0 {
		return o, errors.New("give each flag at least 1, and no arguments")
	}
	return o, nil
}

// measureBackup measures what a neighbour of everybody notices of backups, and prints a table.
func measureBackup(args []string) error {
	o, err := parseBackup(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return run(inTemp(o.measure))
}

// measure compares the requests of a neighbour without backups and with one backup after the other, on one hub.
func (o backupOptions) measure(dir string) ([]row, error) {
	s, err := startStage(filepath.Join(dir, "stage"), 1, nil)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	n, err := newNeighbour(s)
	if err != nil {
		return nil, fmt.Errorf("prepare the neighbour: %w", err)
	}
	if err := s.grow(o.size << 20); err != nil {
		return nil, fmt.Errorf("fill the store: %w", err)
	}
	n.measure(warmUp)
	file := filepath.Join(dir, "backup")
	var alone, beside observed
	var backups []time.Duration
	for range o.rounds {
		alone.add(n.measure(o.lasting))
		ctx, stop := context.WithTimeout(context.Background(), o.lasting)
		ended := make(chan error, 1)
		go func() {
			took, err := backUp(ctx, s.hubs[0], file)
			backups = append(backups, took...)
			ended <- err
		}()
		beside.add(n.measure(o.lasting))
		err := <-ended
		stop()
		if err != nil {
			return nil, err
		}
	}
	if failures := append(alone.failures, beside.failures...); len(failures) > 0 {
		return nil, fmt.Errorf("%d requests of the neighbour failed, the first: %s", len(failures), failures[0])
	}
	var rows []row
	for request, name := range neighbourColumns {
		without, with := percentile(alone.took[request], 99), percentile(beside.took[request], 99)
		rows = append(rows, row{
			"p99 beside a backup: " + name, fine(without), fine(with), ratio(with.Seconds(), without.Seconds()), "≤ 1.2",
		})
	}
	now, err := s.footprint()
	if err != nil {
		return rows, err
	}
	made, err := os.Stat(file)
	if err != nil {
		return rows, err
	}
	what := fmt.Sprintf("%d backups of a store of %d MiB, to %d MiB, each", len(backups), now.file>>20, made.Size()>>20)
	return append(rows, row{what, "", seconds(median(backups)), "", ""}), nil
}

// grow writes to the store until it has size bytes more: texts with a random half, as Secrets are.
func (s *stage) grow(size int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*framework.Long)
	defer cancel()
	raw := make([]byte, chunk/2)
	for n := range size / chunk {
		for line := range slices.Chunk(raw, 64) {
			if _, err := rand.Read(line[:32]); err != nil {
				return err
			}
		}
		if _, err := s.etcd.Put(ctx, fmt.Sprintf("bench/%d", n), hex.EncodeToString(raw)); err != nil {
			return err
		}
	}
	return nil
}

// backUp makes one backup after the other, begins none when ctx has ended, and returns how long each took.
func backUp(ctx context.Context, h *hubProcess, to string) (took []time.Duration, err error) {
	program, err := framework.Bin("kedge-hub")
	for err == nil && ctx.Err() == nil {
		began := time.Now()
		out, failed := exec.CommandContext(context.WithoutCancel(ctx), program, "backup", "--data-dir", h.dir, to).CombinedOutput()
		if failed != nil {
			err = fmt.Errorf("kedge-hub backup: %w: %s", failed, out)
		}
		took = append(took, time.Since(began))
	}
	return took, err
}

func fine(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// add adds what was seen later.
func (o *observed) add(later observed) {
	for request := range o.took {
		o.took[request] = append(o.took[request], later.took[request]...)
	}
	o.failures = append(o.failures, later.failures...)
}
