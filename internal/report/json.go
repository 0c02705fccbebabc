package report

import (
	"bytes"
	"encoding/json"
	"strings"
)

// lineWidth is the length up to which readableJSON keeps an object on one line.
const lineWidth = 120

// readableJSON writes v so that a person can review a change of it: objects that
// fit on a line stay on one, others have one key per line. Keys keep the order
// of their structs.
func readableJSON(v any) ([]byte, error) {
	compact, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := layOut(&b, compact, 0); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// layOut writes one compact JSON value that starts at the given depth.
func layOut(b *bytes.Buffer, raw json.RawMessage, depth int) error {
	if 2*depth+len(raw) <= lineWidth || raw[0] != '{' && raw[0] != '[' {
		b.Write(raw)
		return nil
	}
	keys, values, err := members(raw)
	if err != nil {
		return err
	}
	b.WriteByte(raw[0])
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + strings.Repeat("  ", depth+1))
		if keys != nil {
			b.Write(keys[i])
			b.WriteString(": ")
		}
		if err := layOut(b, v, depth+1); err != nil {
			return err
		}
	}
	b.WriteString("\n" + strings.Repeat("  ", depth))
	b.WriteByte(raw[len(raw)-1])
	return nil
}

// members splits an object or an array into its parts, in order; keys is nil for
// an array.
func members(raw json.RawMessage) (keys, values []json.RawMessage, err error) {
	if raw[0] == '[' {
		err = json.Unmarshal(raw, &values)
		return nil, values, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, err
		}
		keys, values = append(keys, key), append(values, value)
	}
	return keys, values, nil
}
