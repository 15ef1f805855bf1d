package config

// Explain configures the scans of names by /explain/v1.
type Explain struct {
	Enabled      bool   `yaml:"enabled"`
	Public       bool   `yaml:"public"`
	AllowPrivate bool   `yaml:"allow_private"`
	Registry     bool   `yaml:"registry"`
	Resolvers    string `yaml:"resolvers"` // file; empty for the built-in list
	Lab          string `yaml:"lab"`       // folder of a lab; empty for the public DNS
}

func (v *checker) explain(e Explain) {
	v.need(!e.Public || !e.AllowPrivate, "explain.allow_private",
		"cannot be used with explain.public: strangers would reach into this network")
}
