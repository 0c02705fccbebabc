package workloads

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"slosim/sim/clock"
)

// parquetDecoder reads three or four columns of a Parquet file side by side, a
// page at a time. Its lines are rows.
type parquetDecoder struct {
	file    *parquet.File
	group   int
	columns []*parquetColumn // arrival, prompt, output, where
	spec    *Trace
	unit    clock.Duration // of the arrival
	n       int
}

// parquetColumn streams the values of one column of a row group.
type parquetColumn struct {
	name   string
	index  int
	pages  parquet.Pages
	values parquet.ValueReader
	buffer [512]parquet.Value
	have   []parquet.Value
}

func openParquet(spec Trace, f *traceFile) (d decoder, err error) {
	broken := func(what string) (decoder, error) { return nil, &TraceError{spec.File, 1, what} }
	if !f.parquet {
		return broken("this is no Parquet file")
	}
	defer func() { // the library panics on some broken files
		if p := recover(); p != nil {
			d, err = broken(fmt.Sprintf("the Parquet file is broken: %v", p))
		}
	}()
	file, err := os.Open(spec.File)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	f.also = append(f.also, file)
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	p := &parquetDecoder{spec: &spec, unit: spec.Unit, group: -1}
	if p.file, err = parquet.OpenFile(file, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true)); err != nil {
		return broken("the Parquet file is broken: " + err.Error())
	}
	names := []string{spec.Arrival, spec.Prompt, spec.Output}
	if spec.Where.Column != "" {
		names = append(names, spec.Where.Column)
	}
	var have []string
	for _, path := range p.file.Schema().Columns() {
		have = append(have, strings.Join(path, "."))
	}
	for _, name := range names {
		k := slices.Index(have, name)
		if k < 0 {
			return broken(fmt.Sprintf("no column %q; the file has %s", name, strings.Join(have, ", ")))
		}
		p.columns = append(p.columns, &parquetColumn{name: name, index: k})
	}
	p.typedUnit()
	return p, nil
}

// typedUnit takes the unit of a column that is a time stamp by its type.
func (d *parquetDecoder) typedUnit() {
	leaf, ok := d.file.Schema().Lookup(strings.Split(d.spec.Arrival, ".")...)
	if !ok {
		return
	}
	l := leaf.Node.Type().LogicalType()
	if l == nil {
		return
	}
	if stamp, ok := l.Value.(*format.TimestampType); ok {
		switch stamp.Unit.Value.(type) {
		case *format.MilliSeconds:
			d.unit = clock.Millisecond
		case *format.MicroSeconds:
			d.unit = clock.Microsecond
		case *format.NanoSeconds:
			d.unit = clock.Nanosecond
		}
	}
}

func (d *parquetDecoder) line() int { return d.n }

func (d *parquetDecoder) decode(r *record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &TraceError{d.spec.File, d.n, fmt.Sprintf("the Parquet file is broken: %v", p)}
		}
	}()
	var v [4]parquet.Value
	for {
		if err := d.row(v[:len(d.columns)]); err != nil {
			return err
		}
		if len(d.columns) < 4 || v[3].String() == d.spec.Where.Is {
			break
		}
	}
	for i := range 3 {
		if v[i].IsNull() {
			return badf("row %d has no %s", d.n, d.columns[i].name)
		}
	}
	if v[0].Kind() == parquet.Int64 || v[0].Kind() == parquet.Int32 {
		units := v[0].Int64()
		if most := math.MaxInt64 / 2 / int64(d.unit); units > most || units < -most {
			return badf("%d is no arrival time in units of %s: is the unit right?", units, d.unit)
		}
		r.at = clock.Duration(units) * d.unit
	} else if r.at, err = decimalTime([]byte(v[0].String()), d.unit); err != nil {
		return err
	}
	if r.prompt, err = tokenCount([]byte(v[1].String()), "prompt"); err != nil {
		return err
	}
	r.output, err = tokenCount([]byte(v[2].String()), "output")
	return err
}

// row reads one value of each column.
func (d *parquetDecoder) row(out []parquet.Value) error {
	for {
		if d.group >= 0 {
			ended := 0
			for i, c := range d.columns {
				v, err := c.next()
				switch {
				case err == io.EOF:
					ended++
				case err != nil:
					return &TraceError{d.spec.File, d.n + 1, fmt.Sprintf("column %s cannot be read: %v", c.name, err)}
				}
				out[i] = v
			}
			if ended == 0 {
				d.n++
				return nil
			}
			if ended < len(d.columns) {
				return &TraceError{d.spec.File, d.n + 1, "the columns are not equally long: is one of them a list?"}
			}
		}
		if d.group++; d.group >= len(d.file.RowGroups()) {
			return io.EOF
		}
		chunks := d.file.RowGroups()[d.group].ColumnChunks()
		for _, c := range d.columns {
			if c.pages != nil {
				c.pages.Close()
			}
			c.pages, c.values, c.have = chunks[c.index].Pages(), nil, nil
		}
	}
}

func (c *parquetColumn) next() (parquet.Value, error) {
	for len(c.have) == 0 {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return parquet.Value{}, err
			}
			c.values = page.Values()
		}
		n, err := c.values.ReadValues(c.buffer[:])
		c.have = c.buffer[:n]
		if err == io.EOF {
			c.values = nil
		} else if err != nil {
			return parquet.Value{}, err
		}
	}
	v := c.have[0]
	c.have = c.have[1:]
	return v, nil
}
