package telemetry

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// ServerUsage is what a server of a shared store says about its own resources.
type ServerUsage struct {
	Server     string  // its address in a cluster
	CPU        float64 // seconds since it was started
	Memory     int64   // bytes
	MaxMemory  int64   // bytes, 0 if there is no bound
	Evicted    int64   // keys since it was started
	Clients    int64   // connections
	MaxClients int64   // connections, 0 if it does not say
	Keys       int64   // in all databases
}

var (
	usageCPUDesc        = describe("tidegate_store_server_cpu_seconds_total", "CPU time of a server of the shared store, as it says itself.", "server")
	usageMemoryDesc     = describe("tidegate_store_server_memory_bytes", "Memory that a server of the shared store uses, as it says itself.", "server")
	usageMaxMemoryDesc  = describe("tidegate_store_server_memory_max_bytes", "Memory that a server of the shared store may use (maxmemory); absent if there is no bound.", "server")
	usageEvictedDesc    = describe("tidegate_store_server_evicted_keys_total", "Keys that a server of the shared store has evicted since it was started.", "server")
	usageClientsDesc    = describe("tidegate_store_server_clients", "Connections of a server of the shared store, those of others included.", "server")
	usageMaxClientsDesc = describe("tidegate_store_server_clients_max", "Connections that a server of the shared store accepts (maxclients); absent if it does not say.", "server")
	usageKeysDesc       = describe("tidegate_store_server_keys", "Keys of a server of the shared store, of whatever prefix.", "server")

	usageDescs = []*prometheus.Desc{
		usageCPUDesc, usageMemoryDesc, usageMaxMemoryDesc, usageEvictedDesc, usageClientsDesc, usageMaxClientsDesc, usageKeysDesc,
	}
)

// collectUsage exports at most maxServers, those with the least memory left first.
func collectUsage(emit emit, all []ServerUsage) {
	all = slices.SortedFunc(slices.Values(all), func(a, b ServerUsage) int {
		return cmp.Or(cmp.Compare(b.full(), a.full()), cmp.Compare(a.Server, b.Server))
	})
	for _, u := range all[:min(len(all), maxServers)] {
		emit(usageCPUDesc, counter, u.CPU, u.Server)
		emit(usageMemoryDesc, gauge, float64(u.Memory), u.Server)
		if u.MaxMemory > 0 {
			emit(usageMaxMemoryDesc, gauge, float64(u.MaxMemory), u.Server)
		}
		emit(usageEvictedDesc, counter, float64(u.Evicted), u.Server)
		emit(usageClientsDesc, gauge, float64(u.Clients), u.Server)
		if u.MaxClients > 0 {
			emit(usageMaxClientsDesc, gauge, float64(u.MaxClients), u.Server)
		}
		emit(usageKeysDesc, gauge, float64(u.Keys), u.Server)
	}
}

// full returns the share of its memory that a server uses; 0 if there is no bound.
func (u *ServerUsage) full() float64 {
	if u.MaxMemory <= 0 {
		return 0
	}
	return float64(u.Memory) / float64(u.MaxMemory)
}
