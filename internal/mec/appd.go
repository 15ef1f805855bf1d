package mec

// ParseAppD reads the DNS rules of an application descriptor (MEC 010-2, appDNSRule), in JSON or YAML. What it does not
// know it leaves alone. Errors in a rule are FieldErrors such as "appDNSRule[2].ipAddress".
func ParseAppD(b []byte) ([]Rule, error) { return nil, errTodo }
