package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// files are what tasks refer to, by content, in the server's object store.
type files struct {
	js   jetstream.JetStream
	log  func(string)
	mu   sync.Mutex
	done map[string]string // SHA-256 → path here, checked
}

func (f *files) store(ctx context.Context, make bool) (jetstream.ObjectStore, error) {
	s, err := f.js.ObjectStore(ctx, fileBucket)
	if make && errors.Is(err, jetstream.ErrBucketNotFound) {
		s, err = f.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: fileBucket, Description: "files of sim's tasks, by SHA-256", TTL: keptFor})
	}
	return s, explain(err)
}

// put sends a file to the server, unless it is there.
func (f *files) put(ctx context.Context, file File) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done[file.SHA256] != "" {
		return nil
	}
	s, err := f.store(ctx, true)
	if err != nil {
		return err
	}
	if _, err := s.GetInfo(ctx, file.SHA256); err != nil {
		in, err := os.Open(file.Path)
		if err != nil {
			return err
		}
		defer in.Close()
		if info, err := in.Stat(); err == nil && f.log != nil {
			f.log(fmt.Sprintf("%s (%d bytes) goes to the server", file.Path, info.Size()))
		}
		if _, err := s.Put(ctx, jetstream.ObjectMeta{Name: file.SHA256, Description: filepath.Base(file.Path)}, in); err != nil {
			return fmt.Errorf("%s cannot be sent to the server: %w", file.Path, explain(err))
		}
	}
	if f.done == nil {
		f.done = map[string]string{}
	}
	f.done[file.SHA256] = file.Path
	return nil
}

// get returns where a file lies on this machine: where it lay at the coordinator's,
// if the same bytes are there, or in dir, fetched from the server.
func (f *files) get(ctx context.Context, file File, dir string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if path := f.done[file.SHA256]; path != "" {
		return path, nil
	}
	if f.done == nil {
		f.done = map[string]string{}
	}
	for _, path := range []string{file.Path, filepath.Join(dir, file.SHA256+filepath.Ext(file.Path))} {
		if sum, err := sumOf(path); err == nil && sum == file.SHA256 {
			f.done[file.SHA256] = path
			return path, nil
		}
	}
	path := filepath.Join(dir, file.SHA256+filepath.Ext(file.Path))
	s, err := f.store(ctx, false)
	if err != nil {
		return "", fmt.Errorf("%s is not here, and the server has no files: %w", file.Path, err)
	}
	in, err := s.Get(ctx, file.SHA256)
	if err != nil {
		return "", fmt.Errorf("%s cannot be fetched: %w", file.Path, err)
	}
	defer in.Close()
	if err := save(dir, path, in, file.SHA256); err != nil {
		return "", fmt.Errorf("%s cannot be stored here: %w", file.Path, err)
	}
	f.done[file.SHA256] = path
	return path, nil
}

func sumOf(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// save writes a file that appears when it is complete and has the right bytes.
func save(dir, path string, in io.Reader, sum string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := os.CreateTemp(dir, ".file-*")
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), in)
	if err = errors.Join(err, out.Close()); err == nil && hex.EncodeToString(h.Sum(nil)) != sum {
		err = errors.New("its checksum is wrong")
	}
	if err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		os.Remove(out.Name())
	}
	return err
}
