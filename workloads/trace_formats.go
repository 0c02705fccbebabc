package workloads

import (
	"bytes"
	"strings"
)

// traceFormats in order of detection: the more special ones come first.
var traceFormats = []traceFormat{
	{"azure", func(first []byte) bool { return header(first, azureColumns[:]...) }, openAzure},
	{"mooncake", func(first []byte) bool {
		return bytes.HasPrefix(first, []byte("{")) && bytes.Contains(first, []byte(`"input_length"`)) && bytes.Contains(first, []byte(`"timestamp"`))
	}, openMooncake},
	{"csv", func(first []byte) bool { return bytes.IndexByte(first, ',') > 0 && first[0] != '{' && first[0] != '[' }, openCSV},
}

// header tells whether a header line has all of the columns.
func header(first []byte, columns ...string) bool {
	have := map[string]bool{}
	for _, f := range strings.Split(string(first), ",") {
		have[strings.TrimSpace(string(unquote([]byte(f))))] = true
	}
	for _, c := range columns {
		if !have[c] {
			return false
		}
	}
	return true
}
