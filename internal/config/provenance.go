package config

// Provenance says where each value of an experiment came from.
type Provenance struct {
	File    string   // path of the experiment as given
	SHA256  string   // of the resolved experiment's canonical JSON: its identity
	Sets    []string // --set arguments, in order
	Entries []Entry  // every setting of the complete experiment, in file order

	Warnings []*Error // what is likely wrong in a valid experiment, in file order
}

// Entry is one setting: its dotted path ("pool.main.replicas"), its value as
// text, and its origin ("prompt-growth.toml:12", "default", "--set",
// "catalogue: llama-3.3-70b"). Note names the source or says that the value is
// an assumption.
type Entry struct {
	Path, Value, Origin, Note string
}
