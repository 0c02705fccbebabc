//go:build !unix

package queue

import "os"

// lockFile opens the file; these systems have no lock that ends with the process.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
