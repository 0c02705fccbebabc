package models

import "math"

// allReduceKernel is an all-reduce over tp GPUs; the zero value costs nothing.
type allReduceKernel struct {
	alphaS, perByteS float64 // if there are no knots; else of the way between nodes
	logBytes, logS   []float64
}

// newAllReduce returns the all-reduce over tp GPUs. Above a node's size it is
// one within each node, and a ring between the nodes in which every GPU carries
// its share of the bytes.
func newAllReduce(g GPU, tp int) allReduceKernel {
	node := min(tp, g.NodeGPUs, 8)
	k := newNodeAllReduce(g.AllReduce.of(node), g.Common.AllReduceKnotBytes, node)
	if nodes := float64(tp / node); tp > g.NodeGPUs {
		k.alphaS += 2 * math.Log2(nodes) * g.Common.NetworkUs * 1e-6
		k.perByteS += 2 * (nodes - 1) / nodes / float64(node) / (g.Common.NetworkGBs * 1e9)
	}
	return k
}

func newNodeAllReduce(c AllReduce, knotBytes [allReduceKnots]int64, tp int) allReduceKernel {
	if tp == 1 {
		return allReduceKernel{}
	}
	if c.KnotsUs[0] == 0 {
		ring := 2 * float64(tp-1) / float64(tp)
		return allReduceKernel{alphaS: c.AlphaUs * 1e-6, perByteS: ring / (c.BusGBs * 1e9)}
	}
	var k allReduceKernel
	for i, us := range c.KnotsUs {
		k.logBytes = append(k.logBytes, math.Log(float64(knotBytes[i])))
		k.logS = append(k.logS, math.Log(us*1e-6))
	}
	return k
}

// seconds returns the time of an all-reduce of this many bytes per GPU.
func (a *allReduceKernel) seconds(bytes float64) float64 {
	return a.rowSeconds(bytes) + a.alphaS + a.perByteS*bytes
}

// rowSeconds interpolates the measured row. Between knots it is a power law;
// below the first knot it is latency, constant; above the last it is bandwidth,
// proportional to the bytes.
func (a *allReduceKernel) rowSeconds(bytes float64) float64 {
	n := len(a.logS)
	if n == 0 {
		return 0
	}
	x := math.Log(bytes)
	if x <= a.logBytes[0] {
		return math.Exp(a.logS[0])
	}
	if x >= a.logBytes[n-1] {
		return math.Exp(a.logS[n-1] + x - a.logBytes[n-1])
	}
	i := 1
	for a.logBytes[i] < x {
		i++
	}
	share := (x - a.logBytes[i-1]) / (a.logBytes[i] - a.logBytes[i-1])
	return math.Exp(a.logS[i-1] + share*(a.logS[i]-a.logS[i-1]))
}

// linkKernel is a message from one GPU to another or to many.
type linkKernel struct{ alphaS, perByteS float64 }

func (k linkKernel) seconds(bytes float64) float64 { return k.alphaS + k.perByteS*bytes }

// newHop returns the hand-over of activations to the next pipeline stage. The
// stages of a replica that fits in a node share it.
func newHop(d Deployment) linkKernel {
	g := d.GPU
	if d.GPUs() > g.NodeGPUs {
		return linkKernel{g.Common.NetworkUs * 1e-6, 1 / (g.Common.NetworkGBs * 1e9)}
	}
	linkGBs := g.PCIeGBs
	if g.Topology == meshTopology {
		linkGBs = g.NVLinkGBs
	}
	return linkKernel{g.Common.NodeLinkUs * 1e-6, 1 / (linkGBs * 1e9)}
}

// newAllToAll returns dispatch or combine of tokens between ep GPUs, by the
// bytes that one rank sends. Beyond a node the share of the other nodes crosses
// the network.
func newAllToAll(g GPU, ep int) linkKernel {
	c := g.AllToAll
	k := linkKernel{c.AlphaUs * 1e-6, 1 / (c.BusGBs * 1e9)}
	if ep > g.NodeGPUs {
		away := 1 - float64(g.NodeGPUs)/float64(ep)
		k.alphaS += g.Common.NetworkUs * 1e-6
		k.perByteS = max(k.perByteS*(1-away), away/(g.Common.NetworkGBs*1e9))
	}
	return k
}
