package xds

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"tidegate.dev/tidegate/internal/lang/bounded"
)

// TLS says how the control plane is verified, and how it verifies this process. The files are
// read for every connection, so that certificates can be renewed.
type TLS struct {
	CA   string // file with the authorities of the server's certificate (PEM); "" for those of the system
	Cert string // file with the certificate to show (PEM); "" for none
	Key  string // file with its private key (PEM)
	Name string // that the server's certificate must have; "" for the host of the address
}

const (
	connectTimeout = 5 * time.Second
	// idlePing is above the 5 minutes that a grpc-go server wants between two pings.
	idlePing = 6 * time.Minute
)

// dial returns a client connection, which connects when it is first used.
func (o *Options) dial() (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if o.TLS != nil {
		c, err := o.TLS.config(o.Address)
		if err != nil {
			return nil, err
		}
		secure = credentials.NewTLS(c)
	}
	return grpc.NewClient(o.Address,
		grpc.WithTransportCredentials(secure),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: grpcbackoff.DefaultConfig, MinConnectTimeout: connectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: idlePing, Timeout: 20 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(o.MaxMessage)),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
	)
}

func (t *TLS) config(address string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.Name}
	if c.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("the address %q has no host to verify: %w", address, err)
		}
		c.ServerName = host
	}
	if t.CA != "" {
		text, err := bounded.ReadFile(t.CA, bounded.PEM)
		if err != nil {
			return nil, fmt.Errorf("read the authorities of the control plane: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("read the authorities of the control plane: there is no certificate in PEM in " + t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := bounded.KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("read the certificate for the control plane: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
