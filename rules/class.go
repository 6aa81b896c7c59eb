package rules

// leaves has, for each class, the share of a rule's limits that its requests leave for more
// important classes. It is nil for a rule that sets nothing aside.
type leaves []int

// of returns the share for a class, in hundredths of a percent.
func (l leaves) of(class int32) int {
	if l == nil {
		return 0
	}
	return l[class]
}

// className returns the name of a class by its number; "" for -1.
func (s *Set) className(class int) string {
	if class < 0 {
		return ""
	}
	return s.classes[class]
}
