package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/daemon"
)

// masters is how many share the keys of the cluster.
const masters = 3

// startTime is how long they may take to find each other.
const startTime = 15 * time.Second

// clusterCallers is the load on one Redis and on the cluster, which are for the most callers.
const clusterCallers = mostCallers

// cluster is a Redis Cluster of ours, of masters alone.
type cluster struct{ nodes []*server }

// startCluster starts one, and returns when all its masters know of each other.
func startCluster(ctx context.Context) (*cluster, error) {
	c := &cluster{}
	for range masters {
		bus, err := busPort()
		if err == nil {
			var n *server
			if n, err = startRedis(ctx, "--cluster-enabled", "yes", "--cluster-port", bus); err == nil {
				c.nodes = append(c.nodes, n)
				err = c.join(ctx, n, bus)
			}
		}
		if err != nil {
			c.stop()
			return nil, fmt.Errorf("start a cluster: %w", err)
		}
	}
	if err := c.await(ctx); err != nil {
		c.stop()
		return nil, fmt.Errorf("start a cluster: %w", err)
	}
	return c, nil
}

// busPort is free for what masters tell each other.
func busPort() (string, error) {
	address, err := daemon.FreeAddress()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(address)
	return port, err
}

// join gives the last of the nodes its slots, and has it meet the first.
func (c *cluster) join(ctx context.Context, n *server, bus string) error {
	const slots = 16384
	i := len(c.nodes) - 1
	host, port, _ := net.SplitHostPort(n.Address)
	return errors.Join(
		n.control.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(),
		n.control.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", slots*i/masters, slots*(i+1)/masters-1).Err(),
		c.nodes[0].control.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err())
}

// await returns once every master sees all of them.
func (c *cluster) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, n := range c.nodes {
		for {
			info, err := n.control.ClusterInfo(ctx).Result()
			if err == nil && field(info, "cluster_state") == "ok" && field(info, "cluster_known_nodes") == strconv.Itoa(masters) {
				break
			}
			select {
			case <-ctx.Done():
				return errors.Join(ctx.Err(), err)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

func (c *cluster) stop() {
	for _, n := range c.nodes {
		n.stop()
	}
}

func (c *cluster) where() string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.Address)
	}
	return strings.Join(all, ",")
}

// account returns the sum of the accounts of all masters.
func (c *cluster) account(ctx context.Context) (sum account, err error) {
	for _, n := range c.nodes {
		a, err := n.account(ctx)
		if err != nil {
			return account{}, err
		}
		sum = account{sum.cpu + a.cpu, sum.calls + a.calls, sum.spent + a.spent}
	}
	return sum, nil
}

// ofMasters lets one Redis and a cluster decide under the same load, both in batches.
func (b *bench) ofMasters(ctx context.Context, f *figures) error {
	c, err := startCluster(ctx)
	if err != nil {
		return err
	}
	defer c.stop()
	b.cluster = c
	three, apart := chain("Tidegate, three masters", "chain", tidegate.Terms{}), plain("plain")
	three.cluster, apart.cluster = true, true
	apart.name = "Tidegate, three masters, a call per decision"
	f.cluster, err = b.race(ctx, "three masters", &load{callers: clusterCallers, drawn: uniform(makeKeys("user-", users))}, plenty,
		three, chain("Tidegate, one Redis", "chain", tidegate.Terms{}), apart)
	return err
}
