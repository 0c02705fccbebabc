package report

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A tornado chart has its rows downwards and its values to the right: an unseen bar up to
// the low value, a seen one from there to the high value, both values in the tooltip.
func TestBarsRunFromLowToHigh(t *testing.T) {
	p := &Plot{ID: "t", Title: "T", Unit: "s", Bars: true, Below: "setting", Names: []string{"rate, 4/s to 13/s", "batch"}, Labels: []string{"rate", "batch"},
		Lines: []PlotLine{{Label: "least", Unit: "s", Values: []float64{1, 2}, Colour: "--p50"}, {Label: "greatest", Unit: "s", Values: []float64{5, 3}, Colour: "--p99"}}}
	c := p.chart()
	data, err := c.JSON(0)
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		Names   []string
		Columns []struct {
			Label  string
			Hidden bool
			Values []float64
		}
		Option struct {
			XAxis []struct{ Type string }
			YAxis []struct {
				Type    string
				Inverse bool
				Data    []string
			}
			Series []struct {
				Type, Stack string
				Encode      struct{ X, Y string }
				ItemStyle   struct{ Color string }
			}
		}
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(data))).Decode(&b); err != nil {
		t.Fatal(err)
	}
	o := b.Option
	if o.XAxis[0].Type != "value" || o.YAxis[0].Type != "category" || !o.YAxis[0].Inverse || o.YAxis[0].Data[0] != "rate" {
		t.Errorf("axes: %+v %+v", o.XAxis, o.YAxis)
	}
	if len(o.Series) != 2 || o.Series[0].ItemStyle.Color != "transparent" || o.Series[1].ItemStyle.Color != "--p99" {
		t.Fatalf("series: %+v", o.Series)
	}
	for i, s := range o.Series {
		if s.Type != "bar" || s.Stack != "bar" || s.Encode.Y != "t" {
			t.Errorf("series %d: %+v", i, s)
		}
	}
	if len(b.Columns) != 3 || b.Columns[0].Hidden || b.Columns[1].Hidden || !b.Columns[2].Hidden || b.Columns[2].Values[0] != 4 || b.Columns[1].Values[1] != 3 {
		t.Errorf("columns: %+v", b.Columns)
	}
}
