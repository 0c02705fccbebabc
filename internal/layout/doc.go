// Package layout holds the shape of the repository as a test: which package may
// import which, and who touches what is dangerous.
package layout
