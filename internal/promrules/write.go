package promrules

import (
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Write writes a rule file, with notes as comments before it.
func (f File) Write(w io.Writer, notes []string) error {
	for _, n := range notes {
		if _, err := fmt.Fprintf(w, "# %s\n", n); err != nil {
			return err
		}
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(f); err != nil {
		return fmt.Errorf("promrules: %w", err)
	}
	return encoder.Close()
}
