//go:build !unix

package memory

func mapMemory(int) []byte { return nil }
func unmapMemory([]byte)   {}
