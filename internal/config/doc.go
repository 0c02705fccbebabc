// Package config turns text into checked values: units as people write them, a
// key → line index of a TOML file, all errors at once with the nearest allowed
// name, and the provenance of every setting. It knows nothing of simulation.
package config
