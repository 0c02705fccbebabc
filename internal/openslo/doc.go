// Package openslo reads and writes objectives as OpenSLO v1 documents
// (github.com/OpenSLO/OpenSLO): kinds Service, SLO and AlertPolicy with inline
// indicators and conditions of the kind burnrate.
//
// OpenSLO leaves open how an indicator is measured. What is written measures by
// Prometheus queries on vLLM's metrics, so other tools can use the document; what
// our own objectives know beyond OpenSLO (cohorts, length bands, what counts as
// bad) travels in annotations and comes back from there. A document without them
// is understood when its queries name a vLLM histogram.
package openslo
