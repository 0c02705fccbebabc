package openslo

// The parts of OpenSLO v1 that are read and written, by their names there.

const apiVersion = "openslo/v1"

type document struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       spec     `yaml:"spec"`
}

type metadata struct {
	Name        string            `yaml:"name"`
	DisplayName string            `yaml:"displayName,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// spec is that of every kind: each uses its own fields.
type spec struct {
	Description string `yaml:"description,omitempty"`

	// SLO
	Service         string      `yaml:"service,omitempty"`
	IndicatorRef    string      `yaml:"indicatorRef,omitempty"`
	Indicator       *indicator  `yaml:"indicator,omitempty"`
	TimeWindow      []window    `yaml:"timeWindow,omitempty"`
	BudgetingMethod string      `yaml:"budgetingMethod,omitempty"`
	Objectives      []objective `yaml:"objectives,omitempty"`
	AlertPolicies   []policyRef `yaml:"alertPolicies,omitempty"`

	// SLI
	RatioMetric     *ratio     `yaml:"ratioMetric,omitempty"`
	ThresholdMetric *metricRef `yaml:"thresholdMetric,omitempty"`

	// AlertPolicy
	AlertWhenBreaching  bool           `yaml:"alertWhenBreaching,omitempty"`
	Conditions          []conditionRef `yaml:"conditions,omitempty"`
	NotificationTargets []any          `yaml:"notificationTargets,omitempty"`

	// AlertCondition
	Severity  string     `yaml:"severity,omitempty"`
	Condition *condition `yaml:"condition,omitempty"`
}

type indicator struct {
	Metadata metadata      `yaml:"metadata"`
	Spec     indicatorSpec `yaml:"spec"`
}

type indicatorSpec struct {
	RatioMetric     *ratio     `yaml:"ratioMetric,omitempty"`
	ThresholdMetric *metricRef `yaml:"thresholdMetric,omitempty"`
}

type ratio struct {
	Counter bool       `yaml:"counter"`
	Good    *metricRef `yaml:"good,omitempty"`
	Bad     *metricRef `yaml:"bad,omitempty"`
	Total   *metricRef `yaml:"total,omitempty"`
}

type metricRef struct {
	MetricSource source `yaml:"metricSource"`
}

type source struct {
	Type string            `yaml:"type,omitempty"`
	Ref  string            `yaml:"metricSourceRef,omitempty"`
	Spec map[string]string `yaml:"spec"`
}

type window struct {
	Duration  string    `yaml:"duration"`
	IsRolling bool      `yaml:"isRolling"`
	Calendar  *calendar `yaml:"calendar,omitempty"`
}

type calendar struct {
	StartTime string `yaml:"startTime"`
	TimeZone  string `yaml:"timeZone"`
}

type objective struct {
	DisplayName     string   `yaml:"displayName,omitempty"`
	Op              string   `yaml:"op,omitempty"`
	Value           *float64 `yaml:"value,omitempty"`
	Target          *float64 `yaml:"target,omitempty"`
	TargetPercent   *float64 `yaml:"targetPercent,omitempty"`
	TimeSliceTarget *float64 `yaml:"timeSliceTarget,omitempty"`
	TimeSliceWindow string   `yaml:"timeSliceWindow,omitempty"`
}

// policyRef is an alert policy by name, or the whole of it.
type policyRef struct {
	Ref      string   `yaml:"alertPolicyRef,omitempty"`
	Kind     string   `yaml:"kind,omitempty"`
	Metadata metadata `yaml:"metadata,omitempty"`
	Spec     spec     `yaml:"spec,omitempty"`
}

type conditionRef struct {
	Ref      string   `yaml:"conditionRef,omitempty"`
	Kind     string   `yaml:"kind,omitempty"`
	Metadata metadata `yaml:"metadata,omitempty"`
	Spec     spec     `yaml:"spec,omitempty"`
}

type condition struct {
	Kind           string  `yaml:"kind"`
	Op             string  `yaml:"op"`
	Threshold      float64 `yaml:"threshold"`
	LookbackWindow string  `yaml:"lookbackWindow"`
	AlertAfter     string  `yaml:"alertAfter"`
}
