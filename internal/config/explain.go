package config

// Explain is how /explain/v1 scans names.
type Explain struct {
	Enabled      bool   `yaml:"enabled"`
	Public       bool   `yaml:"public"`
	AllowPrivate bool   `yaml:"allow_private"`
	Registry     bool   `yaml:"registry"`
	Resolvers    string `yaml:"resolvers"` // file; empty: the list that is built in
	Lab          string `yaml:"lab"`       // folder; empty: the public DNS
	PerClient    int    `yaml:"per_client"`
	PerTarget    int    `yaml:"per_target"`
	Keep         int    `yaml:"keep"`
}

func (v *checker) explain(e Explain) {
	v.atLeast("explain.per_client", e.PerClient, 1)
	v.atLeast("explain.per_target", e.PerTarget, 1)
	v.need(1 <= e.Keep && e.Keep <= 1000, "explain.keep", "must be from 1 to 1000")
	v.need(!e.Public || !e.AllowPrivate, "explain.allow_private", "cannot be with explain.public: strangers would reach into this network")
}
